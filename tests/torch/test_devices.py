"""What a CPU build of PyTorch answers when it is asked about other devices."""

import pytest
import torch as pytorch

import monograph.torch as torch

CALLS = [
    "cuda.get_gencode_flags()", "cuda.is_tf32_supported()", "cuda.host_memory_stats()",
    "cuda.memory_stats_as_nested_dict()", "cuda.list_gpu_processes()", "cuda.default_generators",
    "cuda.set_stream(None)", "cuda.set_device(-1)", "cuda.cudart()", "cuda.get_sync_debug_mode()",
    "cuda.memory_usage()", "cuda.utilization()", "cuda.Stream()", "cuda.Event()",
    "cuda.CUDAGraph()", "cuda.MemPool()", "cuda.graph(None)", "cuda.stream(None).__enter__()",
    "accelerator.current_accelerator()", "accelerator.memory_allocated()",
    "accelerator.empty_cache()", "accelerator.set_device_index(0)", "accelerator.current_stream()",
    "accelerator.device_index(None).__enter__()", "accelerator.device_index(0).__enter__()",
    "mps.is_available()", "mps.empty_cache()", "mps.synchronize()", "mps.manual_seed(1)",
    "mps.current_allocated_memory()", "xpu.memory_allocated()", "xpu.synchronize()",
    "xpu.get_rng_state_all()", "xpu.set_device(0)", "cpu.Stream().wait_stream(None)",
    "cpu.Event().query()", "cpu.current_device()", "Stream().query()", "Event().query()",
    "Event().record()", "Event().elapsed_time(Event())", "Stream('cuda')", "Stream().device.type",
    "backends.cuda.is_flash_attention_available()", "backends.cuda.cufft_plan_cache.max_size",
    "backends.cuda.matmul.allow_fp16_accumulation", "backends.cudnn.benchmark_limit",
    "backends.opt_einsum.is_available()", "backends.opt_einsum.strategy",
    "backends.mps.is_macos13_or_newer()", "backends.cusparselt.is_available()",
    "backends.cudnn.version()", "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()",
]  # fmt: skip


NAMES = ("Event", "Stream", "accelerator", "backends", "cpu", "cuda", "mps", "xpu")


def answer(lib, call):
    try:
        return eval(call, {name: getattr(lib, name) for name in NAMES})
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("call", CALLS)
def test_answers(call):
    assert answer(torch, call) == answer(pytorch, call)


def test_events_are_taken_as_such():
    assert isinstance(torch.Stream(), torch.Stream)
    with torch.Stream() as stream, torch.cpu.stream(torch.cpu.current_stream()):
        stream.synchronize()
    assert issubclass(torch.AcceleratorError, RuntimeError)
