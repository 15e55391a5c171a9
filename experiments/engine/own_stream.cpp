#include "experiments/engine/own_stream.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace aimle::experiments {

OwnStream::OwnStream(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl devices(device.type());
  const c10::Device indexed = device.has_index() ? device : devices.getDevice();
  const c10::Stream present = devices.getStream(indexed);
  const c10::Stream own = devices.getStreamFromGlobalPool(indexed);
  c10::Event event(device.type());
  event.record(present);
  event.block(own);
  guard_.emplace(own);
}

}  // namespace aimle::experiments
