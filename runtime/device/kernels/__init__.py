"""The kernels of the device, in the language of `runtime.language.tl`."""
