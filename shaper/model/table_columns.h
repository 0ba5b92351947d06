// Columns of a table out of rows of a report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "shaper/core/units.h"
#include "shaper/model/text_table.h"

namespace shaper {

using Cell = std::optional<std::uint64_t>;

/// One column: what `cell` says about each row.
template <typename Row, typename CellOf>
auto column(const std::vector<Row>& rows, CellOf cell) {
  std::vector<std::conditional_t<std::is_convertible_v<decltype(cell(rows.front())), std::string>, std::string, Cell>>
      cells;
  for (const Row& row : rows) cells.push_back(cell(row));
  return cells;
}

inline Cell bits(const std::optional<DataRate>& rate) {
  return rate ? Cell(rate->bits_per_second) : std::nullopt;
}
inline Cell bytes(const std::optional<ByteCount>& count) {
  return count ? Cell(count->value) : std::nullopt;
}
inline Cell nanos(Nanos time) {
  return static_cast<std::uint64_t>(std::max(time, Nanos{0}).count());
}

/// `rate` in percent of `limit`, rounded to the nearest.
inline Cell percent(DataRate rate, const std::optional<DataRate>& limit) {
  if (!limit || limit->bits_per_second == 0) return std::nullopt;
  const Uint128 hundredfold = Uint128{100} * rate.bits_per_second;
  return static_cast<std::uint64_t>((hundredfold + limit->bits_per_second / 2) / limit->bits_per_second);
}

}  // namespace shaper
