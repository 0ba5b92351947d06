// What stands at which path: the page and its files, the daemon's JSON, the metrics. Only reads.
//
//   /             the page (page/), with page.css, page.js, ... beside it
//   /metrics      Prometheus text; without a daemon shaper_up is 0
//   /api/status   the daemon's JSON as of `shaper status --json`; /api/cluster likewise
//   /api/flows    ?sort=rate&limit=50&match=TEXT&class=NAME: as of `shaper flows --json`; only where flows may be shown
//
// Where there is no answer JSON is {"error":"..."}, with status 503.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "shaper/model/report.h"
#include "shaper/web/http_server.h"
#include "shaper/web/shared_answer.h"

namespace shaper {

class Site {
 public:
  /// Asks the daemon one question, from any thread.
  using AskDaemon = std::function<DaemonAnswer(const std::string& verb)>;
  enum class Flows : bool { hidden, shown };

  /// `host` is shown as the name of this one.
  Site(const AskDaemon& ask, Flows flows, std::string_view host);

  [[nodiscard]] std::variant<HttpReply, HttpServer::Later> reply(const HttpRequest& request);

 private:
  void answer_metrics(const HttpServer::Answer& answer);
  void answer_flows(const HttpRequest& request, const HttpServer::Answer& answer);

  Flows shown_;
  std::string page_;
  FlowsReport flow_report_;  ///< belongs to the thread of flows_
  std::string flow_trouble_;
  std::uint64_t flow_report_number_ = 0;
  SharedAnswer flows_;
  SharedAnswer cluster_;
  SharedAnswer status_;  // the last one: it asks the one before
};

}  // namespace shaper
