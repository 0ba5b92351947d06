// What a supervisor tells the worker that it starts.
#include <gtest/gtest.h>

#include "shaper/live/worker_process.h"

namespace shaper {
namespace {

TEST(WorkerTask, IsReadAsItWasWritten) {
  const WorkerTask task{.channel = 7,
                        .queues = 8,
                        .listener = 9,
                        .owner = 4'000'000'000,
                        .credit = StartCredit::empty,
                        .foreground = true,
                        .image = 12};
  const auto read = WorkerTask::parse(task.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), task.text());
  EXPECT_EQ(read->queues, 8);
  EXPECT_EQ(read->owner, 4'000'000'000);
  EXPECT_EQ(read->credit, StartCredit::empty);
  EXPECT_TRUE(read->foreground);
  EXPECT_EQ(read->image, 12);
  EXPECT_EQ(read->inherited, -1);
}

TEST(WorkerTask, IsNothingElse) {
  for (const char* text : {"", "1 2 3", "1 2 3 0 0 x 1 2", "1 2 3 0 0 0 1", "a b c d e f"})
    EXPECT_FALSE(WorkerTask::parse(text)) << text;
}

}  // namespace
}  // namespace shaper
