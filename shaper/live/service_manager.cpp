#include "shaper/live/service_manager.h"

#include <systemd/sd-daemon.h>

namespace shaper {

ServiceManager::ServiceManager() : watched_(sd_watchdog_enabled(0, nullptr) > 0) {}

void ServiceManager::ready() const {
  sd_notify(0, "READY=1");
}

void ServiceManager::alive() const {
  if (watched_) sd_notify(0, "WATCHDOG=1");
}

void ServiceManager::stopping() const {
  sd_notify(0, "STOPPING=1");
}

}  // namespace shaper
