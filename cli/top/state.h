// What `shaper top` knows and shows at a moment: the latest reports, what is selected, sorted and filtered, and what is
// asked or told at the moment. Pure: it is given reports and keys, and draw() makes a picture of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/meters.h"
#include "shaper/model/config.h"
#include "shaper/model/flow_columns.h"
#include "shaper/model/flow_selection.h"

namespace shaper::top {

/// A line of a list that is selected, and the first one that is seen.
struct Cursor {
  std::size_t at = 0;
  std::size_t first = 0;
  std::size_t rows = 1;  ///< that are seen

  void move(std::ptrdiff_t lines, std::size_t count);
  /// Keeps the selected line in sight.
  void fit(std::size_t rows_seen, std::size_t count);
};

enum class Part : std::uint8_t { meters, flows };

/// What is being asked for in the lowest line.
struct Prompt {
  enum class Kind : std::uint8_t { limit, sort, filter };
  Kind kind = Kind::filter;
  std::string question;
  std::string text;
  std::string selector;  ///< of the flow to be limited
};

/// Text that covers the screen.
struct Page {
  std::string title;
  std::string text;
  Cursor cursor;
};

struct Message {
  std::string text;
  bool failure = false;
};

/// A live limit and the flows that it is for.
struct LiveMatch {
  std::uint64_t id = 0;
  std::string selector;
  Match match;
};

class State {
 public:
  explicit State(NameLookup names) : names_(std::move(names)) {}

  /// `every`: the report took so long that it is asked for less often than was wanted.
  void take(StatusReport report, Instant now, std::optional<Nanos> every = std::nullopt);
  void take(FlowsReport report, std::optional<Nanos> every);
  /// No daemon answers: what is known without one, and why.
  void take_trouble(StatusReport without_daemon, std::string why, Instant now);

  void set_sort(FlowSort sort);
  void set_reverse(bool reverse);
  void set_filter(std::string text);

  /// In either list; the flow or row that is selected stays so when they change.
  void move(std::ptrdiff_t lines);
  /// What a key was about is not to be taken for another one.
  void stay_selected() { move(0); }
  void select_first();
  void select_last();

  [[nodiscard]] const Meter* meter() const;      ///< that is selected
  [[nodiscard]] const FlowReport* flow() const;  ///< that is selected
  [[nodiscard]] const FlowReport& flow(std::size_t place) const { return flows_.flows[chosen_[place]]; }
  [[nodiscard]] std::size_t flow_count() const { return chosen_.size(); }
  [[nodiscard]] const FlowTotals& totals() const { return totals_; }
  [[nodiscard]] std::uint64_t all_flows() const { return flows_.total_flows; }
  [[nodiscard]] Nanos status_every() const { return std::max<Nanos>(interval, status_every_.value_or(Nanos{0})); }
  [[nodiscard]] std::optional<Nanos> flows_every() const { return flows_every_; }
  [[nodiscard]] const std::vector<Meter>& meters() const { return meters_; }
  [[nodiscard]] const StatusReport& status() const { return status_; }
  [[nodiscard]] const std::optional<std::string>& trouble() const { return trouble_; }
  [[nodiscard]] const NameLookup& names() const { return names_; }
  [[nodiscard]] FlowSort sort() const { return sort_; }
  [[nodiscard]] bool reverse() const { return reverse_; }
  [[nodiscard]] const std::string& filter() const { return filter_; }

  /// The live limits that hold a flow.
  [[nodiscard]] std::vector<std::uint64_t> live_limits_of(const FlowReport& flow) const;
  [[nodiscard]] Direction direction_of(const std::string& link) const;

  Part part = Part::flows;
  Cursor meter_cursor;
  Cursor flow_cursor;
  bool paused = false;
  std::chrono::seconds interval{1};
  std::optional<Prompt> prompt;
  std::optional<Page> page;
  std::optional<Message> message;

 private:
  void choose_flows();
  void follow();
  void read_live_limits();

  NameLookup names_;
  StatusReport status_;
  std::vector<Meter> meters_;
  std::vector<Meter> meters_before_;  // while no daemon answers: their histories go on with the next one
  std::vector<LiveMatch> live_;
  FlowsReport flows_;
  std::vector<std::size_t> chosen_;  // places in flows_, in order
  FlowTotals totals_;
  std::optional<Nanos> status_every_;
  std::optional<Nanos> flows_every_;
  std::optional<std::string> trouble_;
  FlowSort sort_ = FlowSort::rate;
  bool reverse_ = false;
  std::string filter_;
  std::optional<FlowReport> followed_flow_;  // absent: the cursor stays on the first line
  std::optional<Meter> followed_meter_;
};

}  // namespace shaper::top
