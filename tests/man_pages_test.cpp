// The man pages name every command and option of the programs, and every key of a policy: what the programs themselves
// say is looked for where a reader looks for it. The pages are those that the build has made.
#include <map>
#include <regex>

#include "shaper/model/policy_words.h"
#include "tests/cli_program.h"

namespace shaper {
namespace {

/// A page without its markup: the titles of its sections, and below each its lines.
class ManPage {
 public:
  explicit ManPage(const std::string& name) {
    std::ifstream file(std::filesystem::path(program()).parent_path() / "packaging" / name);
    EXPECT_TRUE(file) << "no " << name << ": build the target man";
    std::string title;
    for (std::string line; std::getline(file, line);) {
      line = std::regex_replace(line, std::regex(R"(\\f\[[A-Z]*\]|\\)"), "");
      if (line.starts_with(".SH ") || line.starts_with(".SS ")) {
        title = line.substr(4);
        if (title.starts_with('"')) title = title.substr(1, title.size() - 2);
      } else {
        sections_[title].push_back(line);
      }
    }
  }

  /// What follows the marks of a list.
  [[nodiscard]] std::vector<std::string> terms(const std::string& section) const {
    std::vector<std::string> result;
    const auto found = sections_.find(section);
    EXPECT_NE(found, sections_.end()) << "there is no section " << section;
    if (found == sections_.end()) return result;
    for (std::size_t i = 1; i < found->second.size(); ++i) {
      if (found->second[i - 1] == ".TP") result.push_back(found->second[i]);
    }
    return result;
  }

  /// Everything in the section; nothing where there is none.
  [[nodiscard]] std::string text(const std::string& section) const {
    std::string result;
    const auto found = sections_.find(section);
    if (found == sections_.end()) return result;
    for (const std::string& line : found->second) result += line + '\n';
    return result;
  }

 private:
  std::map<std::string, std::vector<std::string>> sections_;
};

/// Whether `word` stands there alone, and not as a part of a longer one.
bool names(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  std::vector<std::string> result;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    result.push_back((*match)[1]);
  return result;
}

std::vector<std::string> options_of(const std::string& help) {
  std::vector<std::string> result;
  for (const std::string& option : all_matches(help, "^ +(?:-[a-z],)?(--[a-z-]+)")) {
    if (option != "--help") result.push_back(option);
  }
  return result;
}

class ManPages : public Cli {
 protected:
  [[nodiscard]] std::string help(const std::string& of) const {
    const Ended ended = shell(of + " --help");
    EXPECT_EQ(ended.code, 0) << of << ": " << ended.errors;
    return ended.output;
  }

  /// `command` and those below it.
  void expect_named(const std::string& command, int& found) const {
    const std::string text = help("'" + program() + "'" + command);
    const std::string commands = text.substr(std::min(text.find("\nSubcommands:"), text.size()));
    for (const std::string& below : all_matches(commands, "^  ([a-z]+) ")) expect_named(command + " " + below, found);
    if (command.empty() || !commands.empty()) return;
    ++found;
    const std::string full = "shaper" + command;
    std::string said;
    for (const std::string& term : page_.terms("DESCRIPTION")) {
      if (term == full || term.starts_with(full + " ")) said += term + '\n';
    }
    EXPECT_NE(said, "") << full << " is not in shaper(1): the table of docs/cli.md";
    said += page_.text(full);
    for (const std::string& option : options_of(text)) {
      EXPECT_TRUE(names(said, option)) << full << " " << option << " is not in shaper(1): docs/cli.md";
    }
  }

  ManPage page_{"shaper.1"};
};

TEST_F(ManPages, NameEveryCommandAndItsOptions) {
  int found = 0;
  expect_named("", found);
  EXPECT_GE(found, 15) << "the help was not understood";
}

TEST_F(ManPages, NameTheOptionsOfTheDaemon) {
  const ManPage page("shaperd.8");
  const auto options = options_of(help("'" + program() + "d'"));
  EXPECT_GE(options.size(), 2u) << "the help was not understood";
  for (const std::string& option : options) {
    EXPECT_TRUE(names(page.text("OPTIONS"), option)) << option << " is not in packaging/man/shaperd.8.md";
  }
}

TEST(PolicyManPage, NamesEveryKeyOfEachTable) {
  const ManPage page("shaper.toml.5");
  const std::map<const Level*, std::vector<std::string>> sections{
      {&kTopLevel, {"THE TOP OF THE FILE", "DESCRIPTION"}},
      {&kLinkLevel, {"[[link]]"}},
      {&kClassLevel, {"[[class]]"}},
      {&kLimitLevel, {"[[limit]]", "[cluster]: LIMITS OVER SEVERAL HOSTS"}},
      {&kClusterLevel, {"[cluster]: LIMITS OVER SEVERAL HOSTS"}},
      {&kMatchLevel, {"match"}},
  };
  for (const auto& [level, titles] : sections) {
    std::string terms;
    for (const std::string& title : titles) {
      for (const std::string& term : page.terms(title)) terms += term + '\n';
    }
    for (const std::string_view key : level->keys) {
      // Tables have sections of their own.
      if (level == &kTopLevel && (!page.text("[[" + std::string(key) + "]]").empty() || key == "cluster")) continue;
      EXPECT_TRUE(names(terms, std::string(key))) << key << " of " << level->title << ": docs/configuration.md";
    }
  }
  for (const std::string_view key : kEachLevel.keys) EXPECT_TRUE(names(page.text("each"), std::string(key))) << key;
}

}  // namespace
}  // namespace shaper
