#include "aimle/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace aimle {
namespace {

/// One running call: helpers and the caller take part numbers from `next` until they run out.
struct Job {
  FunctionRef<void(int64_t)> part;
  int64_t parts;
  std::atomic<int64_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;

  void work() {
    for (int64_t i = next++; i < parts; i = next++) {
      try {
        part(i);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  }
};

thread_local bool inside_pool = false;

class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }

  void run(int64_t parts, FunctionRef<void(int64_t)> part) {
    Job job{.part = part, .parts = parts};
    // One job at a time; a nested or concurrent call does its own work instead of waiting.
    std::unique_lock turn(turn_, std::try_to_lock);
    if (inside_pool || !turn.owns_lock() || parts <= 1) {
      job.work();
    } else {
      const int helpers = static_cast<int>(std::min<int64_t>(parts - 1, kMaxHelpers));
      start(job, helpers);
      inside_pool = true;
      job.work();
      inside_pool = false;
      wait();
    }
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  static constexpr int kMaxHelpers = 255;

  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void start(Job& job, int helpers) {
    std::lock_guard lock(mutex_);
    while (static_cast<int>(threads_.size()) < helpers) {
      threads_.emplace_back([this] { loop(); });
    }
    job_ = &job;
    wanted_ = helpers;
    running_ = 0;
    if (helpers == 1) {
      wake_.notify_one();
    } else {
      wake_.notify_all();
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    wanted_ = 0;  // helpers that have not woken yet are no longer needed
    done_.wait(lock, [this] { return running_ == 0; });
    job_ = nullptr;
  }

  void loop() {
    inside_pool = true;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || wanted_ > 0; });
      if (stop_) return;
      --wanted_;
      ++running_;
      Job* job = job_;
      lock.unlock();
      job->work();
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  int wanted_ = 0;
  int running_ = 0;
  bool stop_ = false;
};

}  // namespace

Executor sequential() {
  return {.threads = 1, .run = [](int64_t parts, FunctionRef<void(int64_t)> part) {
            for (int64_t i = 0; i < parts; ++i) part(i);
          }};
}

Executor thread_pool(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {.threads = threads, .run = [](int64_t parts, FunctionRef<void(int64_t)> part) {
            Pool::instance().run(parts, part);
          }};
}

void parallel_for(const Executor& executor, int64_t count, double ns_per_item,
                  FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  const double work = static_cast<double>(count) * ns_per_item;
  const auto worth = static_cast<int64_t>(work / (kMinParallelNs / 2));
  const int64_t parts = std::min<int64_t>({count, executor.threads, worth});
  if (parts <= 1) return body(0, count);
  executor.run(parts, [&](int64_t i) { body(count * i / parts, count * (i + 1) / parts); });
}

}  // namespace aimle
