// A restart: this worker hands over to an heir, or is one. The supervisor passes the word:
//
//   the heir is started    prepare (what is in force)  ->  prepared LAYOUT, or refused WHY
//   the worker in force    hand-over LAYOUT            ->  handed-over, or no-image if the heir reads another layout
//   the heir               take-over
//
// Between the last two nobody reads packets; they wait in the kernel. A worker that has handed over ends when its
// clients have their answers.
#include <utility>

#include "shaper/core/image.h"
#include "shaper/live/clock.h"
#include "shaper/live/handed_over.h"
#include "shaper/live/service.h"

namespace shaper {

/// What only this process knows, but for packets.
template <typename Image>
void Service::carry(Image& image) {
  image(key_, next_queue_, trouble_, reverts_at_, rules_, rules_warnings_);
}

/// The answer comes when it is known whether there is an heir.
Service::Answer Service::restart() {
  if (!shaper_) return Response{ResponseStatus::refused, "the daemon has no policy yet: run 'shaper up'"};
  if (!restarting_) supervisor_.send("restart");
  restarting_ = true;
  restart_outcome_.reset();
  return Slices([this](Response& response) {
    if (!restart_outcome_) return Progress::waits;
    response = *restart_outcome_;
    return Progress::done;
  });
}

void Service::stay(const std::string& reason) {
  if (!std::exchange(restarting_, false)) return;  // it was told why already
  restart_outcome_ = Response{ResponseStatus::refused, "the new worker cannot take over, all is as it was: " + reason};
}

void Service::hand_over(const std::string& layout) {
  packets_.stop();
  cluster_.stop();
  const bool readable = layout == std::to_string(kImageLayout);
  if (readable) {
    ImageWriter image;
    carry(image);
    packets_.carry(image);
    shaper_->save(image, monotonic_now());
    write_image(image_.get(), image.bytes());
  }
  supervisor_.send(readable ? "handed-over" : "no-image");
  restart_outcome_ = Response{ResponseStatus::ok, readable ? "kept" : "anew"};
  handed_over_ = ending_ = true;
  control_.close();
}

void Service::prepare(std::string_view in_force) {
  ready_ = read_in_force(in_force);
  if (*ready_) {
    supervisor_.send("prepared", std::to_string(kImageLayout));
  } else {
    supervisor_.send("refused", ready_->error().body);
  }
}

/// Nobody reads packets now: what could be done before is done.
void Service::take_over() {
  Ready& ready = ready_->value();
  const auto queues = bind_queues(ready.loaded.policy);
  if (!queues) throw std::runtime_error(queues.error());
  const std::string bytes = read_image(inherited_.get());
  ImageReader image(bytes);
  carry(image);
  packets_.carry(image);
  Verdicts due;
  shaper_ = Shaper::restore(std::move(ready.prepared), key_, image, monotonic_now(), due);
  if (!shaper_) throw std::runtime_error("the image of the worker before cannot be read");
  packets_.assign(*queues);
  packets_.drive(*shaper_, ready.loaded.policy, std::move(due));
  inherited_.close();
  settle_in(std::move(ready.loaded));
  control_.open();
}

}  // namespace shaper
