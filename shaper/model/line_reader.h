// Takes a line of an event log apart, word by word.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "shaper/model/plain_text.h"

namespace shaper {

/// After the first word that is not what was asked for, all that follows is void and
/// `error` says what was wrong.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::string_view word() { return take_word(rest_); }

  void fail(std::string_view expected) {
    if (error_.empty()) error_ = fmt::format("expected {}", expected);
  }

  /// The next word is `literal`.
  void expect(std::string_view literal) {
    if (word() != literal) fail(fmt::format("`{}`", literal));
  }

  template <std::integral Number>
  Number number(std::string_view what) {
    return number_in<Number>(word(), what);
  }

  /// The value of the next word, `key=value`.
  std::string_view value(std::string_view key) {
    const std::string_view pair = word();
    if (pair.size() <= key.size() || !pair.starts_with(key) || pair[key.size()] != '=') {
      fail(fmt::format("`{}=`", key));
      return {};
    }
    return pair.substr(key.size() + 1);
  }

  template <std::integral Number>
  Number number_of(std::string_view key) {
    return number_in<Number>(value(key), fmt::format("a number in `{}=`", key));
  }

  template <std::integral Number>
  Number number_in(std::string_view text, std::string_view what) {
    const auto number = parse_number<Number>(text);
    if (!number) fail(what);
    return number.value_or(0);
  }

  /// Two numbers with `between` between them.
  template <std::integral First, std::integral Second>
  std::pair<First, Second> numbers_in(std::string_view text, char between, std::string_view what) {
    const std::size_t middle = text.find(between);
    if (middle == std::string_view::npos) {
      fail(what);
      return {};
    }
    return {number_in<First>(text.substr(0, middle), what), number_in<Second>(text.substr(middle + 1), what)};
  }

  /// All that is left, in quotation marks.
  std::string quoted(std::string_view what) {
    const auto text = unquote_line(std::exchange(rest_, {}));
    if (!text) fail(what);
    return text.value_or("");
  }

  EndPoint end_point(std::string_view what) {
    const auto end_point = parse_end_point(word());
    if (!end_point || !end_point->port) fail(what);
    return end_point.value_or(EndPoint{});
  }

 private:
  std::string_view rest_;
  std::string error_;
};

}  // namespace shaper
