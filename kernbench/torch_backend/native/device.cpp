// The device `ahbm` inside PyTorch: what its dispatcher, storages and generators need in C++.
//
// Storages are allocated by Python, which owns the simulated memory. A data pointer is an offset of
// 2^46 plus a virtual address of the simulated device: no page of the process lies there, so a
// kernel for CPUs that takes such a pointer faults instead of reading other data.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Lazy.h>
#include <c10/util/Logging.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace py = pybind11;

namespace {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// The functions of Python that own the device. Never destroyed: storages outlive the interpreter.
struct Device {
  py::object allocate, release, resized, count, current;
  // The module with the functions of streams, events and memory statistics.
  py::object calls;
};
Device* device = nullptr;

c10::DeviceIndex current_index() {
  if (device == nullptr) {
    return 0;
  }
  py::gil_scoped_acquire gil;
  // Guards of devices and streams end while an error, such as that of a hook, is on its way.
  py::error_scope outer;
  return device->current().cast<c10::DeviceIndex>();
}

void release(void* pointer) {
  if (pointer == nullptr || !Py_IsInitialized()) {
    return;
  }
  py::gil_scoped_acquire gil;
  // A deleter must not throw; and an error may be on its way while storages die.
  py::error_scope outer;
  try {
    device->release(reinterpret_cast<uintptr_t>(pointer));
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("the release of a storage of ahbm");
  }
}

c10::DataPtr allocated(size_t nbytes) {
  const c10::Device here(kDevice, current_index());
  if (nbytes == 0) {
    return {nullptr, nullptr, &release, here};
  }
  py::gil_scoped_acquire gil;
  auto* pointer = reinterpret_cast<void*>(device->allocate(nbytes).cast<uintptr_t>());
  return {pointer, pointer, &release, here};
}

// One of the functions of streams, events and memory statistics. The caller holds the GIL.
template <typename... Given>
py::object called(const char* name, Given&&... given) {
  return device->calls.attr(name)(std::forward<Given>(given)...);
}

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    return allocated(nbytes);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "a storage of ahbm is copied by Tensor.copy_");
  }
  bool initialized() override {
    return device != nullptr;
  }
  void emptyCache(c10::MempoolId_t) override {
    py::gil_scoped_acquire gil;
    called("empty_cache");
  }
  // A command keeps the memory that it uses until it is complete.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  // Bytes now and at their peak; sums of all allocations are not kept.
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    py::gil_scoped_acquire gil;
    const auto [now, peak, reserved, reserved_peak] =
        called("memory_statistics").cast<std::tuple<int64_t, int64_t, int64_t, int64_t>>();
    c10::CachingDeviceAllocator::DeviceStats stats;
    for (auto* each : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes}) {
      each->front().current = now;
      each->front().peak = peak;
    }
    stats.reserved_bytes.front().current = reserved;
    stats.reserved_bytes.front().peak = reserved_peak;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    py::gil_scoped_acquire gil;
    called("reset_peak_memory_stats");
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    py::gil_scoped_acquire gil;
    return called("mem_get_info").cast<std::pair<size_t, size_t>>();
  }
};
Allocator allocator;
REGISTER_ALLOCATOR(kDevice, &allocator)

// The sequence of the generator of CPUs: equal seeds draw equal numbers on both devices.
struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(c10::DeviceIndex index) {
    device_ = c10::Device(kDevice, index);
    key_set_ = kKeys;
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return deviceCount() > 0;
  }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index == current_index();
  }
  c10::DeviceIndex deviceCount() const override {
    py::gil_scoped_acquire gil;
    return device->count().cast<c10::DeviceIndex>();
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_index();
  }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? current_index() : index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static std::vector<at::Generator> generators;
    const auto wanted = static_cast<size_t>(index < 0 ? current_index() : index);
    while (generators.size() <= wanted) {
      const auto next = static_cast<c10::DeviceIndex>(generators.size());
      generators.push_back(at::make_generator<Generator>(next));
    }
    return generators[wanted];
  }
  at::Device getDeviceFromPtr(void*) const override {
    return {kDevice, current_index()};
  }
  // A copy takes the bytes of the moment of its call, so all host memory counts as pinned memory
  // would; a tensor that asks for it has ordinary memory.
  at::Allocator* getPinnedMemoryAllocator() const override {
    return c10::GetCPUAllocator();
  }
  bool isPinnedPtr(const void*) const override {
    return true;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    c10::DataPtr fresh = allocated(nbytes);
    if (storage.data() != nullptr && fresh.get() != nullptr) {
      py::gil_scoped_acquire gil;
      device->resized(
          reinterpret_cast<uintptr_t>(storage.data()),
          reinterpret_cast<uintptr_t>(fresh.get()),
          std::min(storage.nbytes(), nbytes));
    }
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(nbytes);
  }
};

Hooks hooks;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDevice;
  }
  c10::Device exchangeDevice(c10::Device) const override {
    return getDevice();
  }
  c10::Device getDevice() const override {
    return {kDevice, current_index()};
  }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device given) const override {
    if (device == nullptr || (given.has_index() && given.index() != current_index())) {
      return getDefaultStream(given);
    }
    py::gil_scoped_acquire gil;
    return numbered(called("current_number").cast<int64_t>());
  }
  c10::Stream getNewStream(c10::Device, int) const override {
    py::gil_scoped_acquire gil;
    return numbered(called("new_number").cast<int64_t>());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device given, bool) const override {
    return getNewStream(given, 0);
  }
  c10::Stream getDefaultStream(c10::Device given) const override {
    return c10::Stream(c10::Stream::DEFAULT, given);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    py::gil_scoped_acquire gil;
    py::error_scope outer;
    return numbered(called("exchange_number", stream.id()).cast<int64_t>());
  }
  bool queryStream(const c10::Stream& stream) const override {
    py::gil_scoped_acquire gil;
    return called("query_number", stream.id()).cast<bool>();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    py::gil_scoped_acquire gil;
    called("synchronize_number", stream.id());
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    py::gil_scoped_acquire gil;
    called("synchronize");
  }
  // An event of PyTorch holds a reference to an event of Python.
  void record(
      void** event, const c10::Stream& stream, const c10::DeviceIndex,
      const c10::EventFlag) const override {
    py::gil_scoped_acquire gil;
    if (*event == nullptr) {
      *event = called("new_event").release().ptr();
    }
    called("record_event", event_of(*event), stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    py::gil_scoped_acquire gil;
    called("block_on_event", event_of(event), stream.id());
  }
  bool queryEvent(void* event) const override {
    py::gil_scoped_acquire gil;
    return event_of(event).attr("query")().cast<bool>();
  }
  void synchronizeEvent(void* event) const override {
    py::gil_scoped_acquire gil;
    event_of(event).attr("synchronize")();
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    py::gil_scoped_acquire gil;
    return event_of(start).attr("elapsed_time")(event_of(end)).cast<double>();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr && Py_IsInitialized()) {
      py::gil_scoped_acquire gil;
      event_of(event).dec_ref();
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    if (device == nullptr) {
      return 0;
    }
    py::gil_scoped_acquire gil;
    return device->count().cast<c10::DeviceIndex>();
  }

 private:
  static c10::Stream numbered(int64_t number) {
    return c10::Stream(c10::Stream::UNSAFE, {kDevice, current_index()}, number);
  }
  static py::handle event_of(void* event) {
    return py::handle(reinterpret_cast<PyObject*>(event));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// DistributedDataParallel has a timer of a step for each kind of device, and warns where it lacks
// one. To measure the device it would wait for events, which would change the run.
struct NoTimer final : c10d::Timer {
  explicit NoTimer(c10::Device) {}
  void record(Event) override {}
  std::optional<int64_t> measureDifference(Event, Event) override {
    return std::nullopt;
  }
};
using c10d::RegistererTimerRegistry;
using c10d::TimerRegistry;
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::DeviceType::PrivateUse1, NoTimer);

void check_device(std::optional<at::Device> given) {
  if (given.has_value() && given->has_index()) {
    const auto own = current_index();
    TORCH_CHECK(
        given->index() == own, "device '", *given, "' on rank ", int(own),
        ": a rank owns one SIP, 'ahbm:", int(own), "'; omit the index, or pass the rank");
  }
}

at::Tensor empty(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> place, std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  check_device(place);
  const auto type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator, kKeys, type, format);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device> place, std::optional<bool>) {
  check_device(place);
  const auto type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator, kKeys, type);
}

const at::Tensor& resize_(
    const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (self.sizes() == sizes && !format.has_value()) {
    return self;
  }
  // PyTorch's own resize_ copies the storage as memory of the host.
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(sizes);
  if (format.has_value() && *format != at::MemoryFormat::Preserve) {
    tensor->empty_tensor_restride(*format);
  }
  const size_t nbytes = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.itemsize(), self.storage_offset());
  if (nbytes > self.storage().nbytes()) {
    hooks.resizePrivateUse1Bytes(self.storage(), nbytes);
  }
  return self;
}

at::Tensor& set_storage(
    at::Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
    c10::SymIntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), offset.expect_int());
  return self;
}

// A command keeps the memory that it uses until it is complete.
void record_stream(at::Tensor&, c10::Stream) {}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {count}, {1});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(
      self, source.storage(), source.sym_storage_offset(), source.sym_sizes(),
      source.sym_strides());
}

at::Tensor& set_empty(at::Tensor& self) {
  return set_storage(self, at::Storage(at::Storage::use_byte_size_t(), 0, &allocator, true), 0,
                     {0}, {1});
}

// Gives a tensor the elements and the device of another one. It remains the same tensor, for
// optimisers, layers that share it and weak references. PyTorch's own `set_data` does the same
// between the devices that it lists, of which this is none.
void become(at::Tensor& self, const at::Tensor& source) {
  if (auto* meta = torch::autograd::impl::get_autograd_meta(self)) {
    // Its node has the device of the gradients.
    std::lock_guard<std::mutex> lock(meta->mutex_);
    meta->grad_accumulator_.reset();
  }
  self.unsafeGetTensorImpl()->shallow_copy_from(source.getIntrusivePtr());
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && (tensor.is_cpu() || tensor.is_privateuseone());
}

// Whether `self.data = source` may replace the elements, as between a CPU and GPUs, which PyTorch
// lists. Of other layouts and devices it is PyTorch's own answer.
bool may_become(const at::Tensor& self, const at::Tensor& source) {
  return (is_plain(self) && is_plain(source)) ||
         self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(source.key_set());
}

}  // namespace

// With both keys, since a wrapper such as DTensor has only the second one.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("_has_compatible_shallow_copy_type", &may_become);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_has_compatible_shallow_copy_type", &may_become);
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_empty);
  library.impl("record_stream", &record_stream);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("unfold", &at::native::unfold);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("alias", &at::native::alias);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def(
      "install",
      [](py::object allocate, py::object release, py::object resized, py::object count,
         py::object current, py::object calls) {
        device = new Device{allocate, release, resized, count, current, calls};
        at::RegisterPrivateUse1HooksInterface(&hooks);
        // A rank is a greenlet: below its first frame the stack has remains of other greenlets, at
        // which a backtrace of an error would fault.
        c10::SetStackTraceFetcher([]() -> c10::Backtrace {
          return std::make_shared<c10::PrecomputedLazyValue<std::string>>("");
        });
      },
      "Connect the functions of Python that own the device; once in a process.");
  module.def(
      "become", &become, "Give a tensor the elements and the device of another one.");
}
