#include "experiments/run/workers.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "experiments/run/interrupt.h"

namespace aimle::experiments {

void run_tasks(int64_t count, int64_t threads, const std::function<void(int64_t)>& task) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  std::mutex mutex;
  const auto work = [&] {
    at::set_num_threads(1);  // of the calling thread
    while (interrupt_signal() == 0 && !failed) {
      const int64_t i = next++;
      if (i >= count) return;
      try {
        task(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!failed.exchange(true)) first = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  const int64_t wanted = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, count));
  for (int64_t i = 0; i < wanted; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace aimle::experiments
