// What systemd is told, where it started us (sd_notify(3)); elsewhere nothing happens.
#pragma once

namespace shaper {

class ServiceManager {
 public:
  ServiceManager();

  /// Traffic is shaped: units that come after us may start.
  void ready() const;
  /// We are alive; it ends us when it does not hear this for long.
  void alive() const;
  void stopping() const;

 private:
  bool watched_ = false;
};

}  // namespace shaper
