// Independent tasks on several threads, each computing alone: PyTorch's own threads are disabled
// inside, because some of its sums depend on their number. The result of a task therefore depends
// only on the task, not on the number of workers.
#pragma once

#include <cstdint>
#include <functional>

namespace aimle::experiments {

/// Calls task(i) for i = 0 ... count-1 on `threads` workers, in order of i as workers become free.
/// No further task is started after an interrupt or an exception; the first exception is rethrown,
/// unless it is Interrupted (an abandoned task). After an interrupt `save` is called once, on the
/// calling thread, without waiting for running tasks, which may not end in time.
void run_tasks(int64_t count, int64_t threads, const std::function<void(int64_t)>& task,
               const std::function<void()>& save = {});

}  // namespace aimle::experiments
