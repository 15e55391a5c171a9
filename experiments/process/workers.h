// Independent tasks on several threads, each of which computes alone: PyTorch's own threads are
// switched off inside, since some of its sums depend on their number. What a task computes then
// depends on the task only, never on the number of workers.
#pragma once

#include <cstdint>
#include <functional>

namespace aimle::experiments {

/// Calls task(i) for i = 0 ... count-1 on `threads` workers, in order of i as workers become free.
/// No further task is begun after an interrupt or an exception; the first exception is rethrown,
/// unless it is Interrupted: a task that gave up. After an interrupt `save` is called once, on the
/// calling thread, without waiting for the tasks under way: they may not end in time.
void run_tasks(int64_t count, int64_t threads, const std::function<void(int64_t)>& task,
               const std::function<void()>& save = {});

}  // namespace aimle::experiments
