#include "shaper/web/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "shaper/model/flow_selection.h"
#include "shaper/model/metrics.h"
#include "shaper/model/plain_text.h"
#include "shaper/version.h"
#include "shaper/web/page_files.h"

namespace shaper {
namespace {

using Kind = DaemonAnswer::Kind;

constexpr std::chrono::milliseconds kGoodFor{500};
constexpr std::size_t kUsualFlows = 50;
constexpr std::size_t kMostFlows = 1000;

HttpReply json_reply(unsigned status, std::string body) {
  return {status, "application/json", std::move(body) + '\n'};
}

HttpReply json_error(unsigned status, std::string_view sentence) {
  return json_reply(status, fmt::format("{{\"error\":{}}}", json_string(sentence)));
}

/// The daemon's JSON as it is.
HttpReply passed_on(const DaemonAnswer& answer) {
  if (answer.kind == Kind::ok) return json_reply(200, answer.text);
  return json_error(answer.kind == Kind::refused ? 404 : 503, answer.text);
}

HttpReply metrics_reply(const StatusReport& status, const ClusterReport* cluster) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(status, cluster)};
}

StatusReport without_daemon() {
  StatusReport report;
  report.version = kVersion;
  report.mode = Mode::bypassed;
  return report;
}

bool has_cluster_limits(const StatusReport& status) {
  return std::ranges::any_of(status.limits, [](const LimitReport& limit) { return limit.scope == Scope::cluster; });
}

struct FlowQuery {
  FlowSort sort = FlowSort::rate;
  std::size_t limit = kUsualFlows;
  FlowFilter filter;
};

/// The error is a sentence.
tl::expected<FlowQuery, std::string> read_query(const std::map<std::string, std::string>& query) {
  FlowQuery wanted;
  for (const auto& [key, value] : query) {
    if (key == "sort") {
      const auto sort = parse_flow_sort(value);
      if (!sort) return tl::unexpected(fmt::format("sort is one of {}", flow_sorts()));
      wanted.sort = *sort;
    } else if (key == "limit") {
      const auto limit = parse_number<std::size_t>(value);
      if (!limit || *limit == 0 || *limit > kMostFlows) {
        return tl::unexpected(fmt::format("limit is a number from 1 to {}", kMostFlows));
      }
      wanted.limit = *limit;
    } else if (key == "match") {
      if (!value.empty()) wanted.filter.text = value;
    } else if (key == "class") {
      wanted.filter.of_class = value;
    } else {
      return tl::unexpected(std::string("it takes sort, limit, match and class"));
    }
  }
  return wanted;
}

/// Those that are wanted, and no more copies than that.
FlowsReport chosen(const FlowsReport& all, const FlowQuery& query) {
  FlowsReport report{{}, all.total_flows, all.evicted_flows};
  for (const FlowReport& flow : all.flows) {
    if (query.filter.matches(flow)) report.flows.push_back(flow);
  }
  sort_flows(report.flows, query.sort);
  if (report.flows.size() > query.limit) report.flows.resize(query.limit);
  return report;
}

/// A name of a host has no letters that mean anything in HTML; anything else is not shown.
std::string page_of(std::string_view host) {
  constexpr std::string_view kPlace = "%HOST%";
  std::string page(kPage);
  const std::string name = host_in_header(host).value_or("this host");
  for (std::size_t at = page.find(kPlace); at != std::string::npos; at = page.find(kPlace, at)) {
    page.replace(at, kPlace.size(), name);
  }
  return page;
}

}  // namespace

Site::Site(const AskDaemon& ask, Flows flows, std::string_view host)
    : shown_(flows),
      page_(page_of(host)),
      flows_([ask] { return ask("flows"); }, kGoodFor),
      cluster_([ask] { return ask("cluster"); }, kGoodFor),
      status_([ask] { return ask("status"); }, kGoodFor) {}

std::variant<HttpReply, HttpServer::Later> Site::reply(const HttpRequest& request) {
  if (request.path == "/") return HttpReply{200, "text/html; charset=utf-8", page_};
  const auto file = std::ranges::find(kPageFiles, request.path, &PageFile::path);
  if (file != std::end(kPageFiles)) return HttpReply{200, std::string(file->type), std::string(file->text)};
  const auto pass_on = [](SharedAnswer& from) {
    return [&from](const HttpServer::Answer& answer) {
      from.get([answer](const DaemonAnswer& of_daemon, std::uint64_t) { answer(passed_on(of_daemon)); });
    };
  };
  if (request.path == "/api/status") return pass_on(status_);
  if (request.path == "/api/cluster") return pass_on(cluster_);
  if (request.path == "/metrics") return [this](const HttpServer::Answer& answer) { answer_metrics(answer); };
  if (request.path != "/api/flows") return HttpReply{404, HttpReply{}.type, "there is nothing here\n"};
  if (shown_ == Flows::hidden) return json_error(403, "flows are not shown: 'shaper serve --flows' shows them");
  return [this, request](const HttpServer::Answer& answer) { answer_flows(request, answer); };
}

void Site::answer_metrics(const HttpServer::Answer& answer) {
  status_.get([this, answer](const DaemonAnswer& of_daemon, std::uint64_t) {
    if (of_daemon.kind != Kind::ok) return answer(metrics_reply(without_daemon(), nullptr));
    auto status = parse_status(of_daemon.text);
    if (!status) return answer({503, HttpReply{}.type, status.error() + '\n'});
    if (!has_cluster_limits(*status)) return answer(metrics_reply(*status, nullptr));
    cluster_.get([answer, status = std::move(*status)](const DaemonAnswer& of_cluster, std::uint64_t) {
      if (of_cluster.kind != Kind::ok) return answer(metrics_reply(status, nullptr));
      const auto cluster = parse_cluster(of_cluster.text);
      answer(metrics_reply(status, cluster ? &*cluster : nullptr));
    });
  });
}

void Site::answer_flows(const HttpRequest& request, const HttpServer::Answer& answer) {
  const auto query = read_query(request.query);
  if (!query) return answer(json_error(400, query.error()));
  flows_.get([this, answer, query = *query](const DaemonAnswer& of_daemon, std::uint64_t number) {
    if (of_daemon.kind != Kind::ok) return answer(passed_on(of_daemon));
    if (std::exchange(flow_report_number_, number) != number) {
      auto report = parse_flows(of_daemon.text);
      flow_trouble_ = report ? "" : report.error();
      flow_report_ = report ? std::move(*report) : FlowsReport{};
    }
    if (!flow_trouble_.empty()) return answer(json_error(503, flow_trouble_));
    answer(json_reply(200, flows_json(chosen(flow_report_, query))));
  });
}

}  // namespace shaper
