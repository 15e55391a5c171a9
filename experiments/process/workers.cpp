#include "experiments/process/workers.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "experiments/process/interrupt.h"

namespace aimle::experiments {

void run_tasks(int64_t count, int64_t threads, const std::function<void(int64_t)>& task,
               const std::function<void()>& save) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  std::mutex mutex;
  std::condition_variable ended;
  const int64_t wanted = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, count));
  int64_t working = wanted;
  const auto work_on_tasks = [&] {
    at::set_num_threads(1);  // for the calling thread
    while (interrupt_signal() == 0 && !failed) {
      const int64_t i = next++;
      if (i >= count) return;
      try {
        task(i);
      } catch (const Interrupted&) {
        return;
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!failed.exchange(true)) first = std::current_exception();
      }
    }
  };
  const auto work = [&] {
    work_on_tasks();
    const std::scoped_lock lock(mutex);
    --working;
    ended.notify_one();
  };
  std::vector<std::jthread> workers;
  for (int64_t i = 0; i < wanted; ++i) workers.emplace_back(work);
  {
    // A signal handler cannot notify: poll every few milliseconds.
    std::unique_lock lock(mutex);
    bool saved = !save;
    while (!ended.wait_for(lock, std::chrono::milliseconds(20), [&] { return working == 0; })) {
      if (saved || interrupt_signal() == 0) continue;
      saved = true;
      lock.unlock();
      save();
      lock.lock();
    }
  }
  workers.clear();  // joins them, as an exception from `save` does
  if (first) std::rethrow_exception(first);
}

}  // namespace aimle::experiments
