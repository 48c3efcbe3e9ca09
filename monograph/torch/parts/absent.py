"""Names that do nothing here, and names that are refused, each with the reason.

A stand-in takes any arguments, says once that it does nothing, and gives what a program needs to go
on. A refused name can be imported, and raises when it is called. The documentation prints both
tables.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

used_stand_ins: set[str] = set()


@dataclass(frozen=True)
class StandIn:
    """A function that does nothing: why, and what it returns."""

    reason: str
    result: Callable[..., Any] = lambda *args, **options: None

    def named(self, name: str) -> Callable[..., Any]:
        """The function that stands under that name."""

        def stand_in(*args: Any, **options: Any) -> Any:
            if name not in used_stand_ins:
                used_stand_ins.add(name)
                warnings.warn(f"torch.{name} does nothing: {self.reason}", stacklevel=2)
            return self.result(*args, **options)

        stand_in.__name__ = stand_in.__qualname__ = name.rpartition(".")[2]
        stand_in.__doc__ = f"Does nothing: {self.reason}."
        return stand_in


def refusal(name: str, reason: str) -> Callable[..., Any]:
    """A function under that name that says why it cannot do its work; or a class, of which programs
    ask whether something is an instance."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise NotImplementedError(f"torch.{name} is not supported: {reason}")

    last = name.rpartition(".")[2]
    if last[0].isupper():
        return type(last, (), {"__new__": refuse, "__doc__": f"Refused: {reason}."})
    refuse.__name__ = refuse.__qualname__ = last
    refuse.__doc__ = f"Refused: {reason}."
    return refuse


@contextlib.contextmanager
def _nothing(*args: Any, **options: Any) -> Iterator[None]:
    yield  # in a `with`, or around each call of a function


_FORKED = "data workers are forked and send arrays through pipes, so nothing needs shared memory"
_STREAMS = "the CPU runs one program after the other, so there are no streams to wait for"
_TIMELINE = "there is no GPU whose timeline it would mark"

STAND_INS = {
    "Tensor.record_stream": StandIn(_STREAMS),
    "multiprocessing.set_sharing_strategy": StandIn(_FORKED),
    "set_num_interop_threads": StandIn("operators are not run beside each other"),
    "set_flush_denormal": StandIn("numbers below the normal range are kept", lambda mode: False),
    "set_warn_always": StandIn("warnings are shown as Python's filters say"),
    "jit.set_fusion_strategy": StandIn("programs are always fused"),
    "jit.enable_onednn_fusion": StandIn("programs are always fused"),
    **{
        f"_C._jit_{what}": StandIn("programs are always compiled", lambda flag=False: False)
        for what in (
            "set_profiling_executor",
            "set_profiling_mode",
            "override_can_fuse_on_cpu",
            "override_can_fuse_on_gpu",
            "set_texpr_fuser_enabled",
            "set_nvfuser_enabled",
            "can_fuse_on_cpu",
            "can_fuse_on_gpu",
        )
    },
    "cuda.nvtx.range": StandIn(_TIMELINE, _nothing),
    "cuda.nvtx.range_push": StandIn(_TIMELINE, lambda text: 0),
    "cuda.nvtx.range_pop": StandIn(_TIMELINE, lambda: 0),
    **{
        f"utils.tensorboard.SummaryWriter.add_{what}": StandIn(
            "of TensorBoard's files scalars, texts, histograms, images and hparams are written"
        )
        for what in (
            "graph",
            "embedding",
            "audio",
            "video",
            "pr_curve",
            "pr_curve_raw",
            "mesh",
            "custom_scalars",
            "onnx_graph",
            "tensor",
        )
    },
}


_ONNX = "ONNX files are not written yet; torch.save and safetensors files hold the weights"
_SPARSE = "sparse tensors are of coordinates (COO) only, and have few operators; see torch.sparse"
_PROCESSES = "training runs in one process, and there is no communication between processes"
_QUANTISED = "there are no quantised tensors"
_NETWORK = "nothing is downloaded; load the file from a folder of yours"
_EXPORT = "programs are not exported; save the weights and run the model itself"
_SHARDING = (
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
)  # fmt: skip
_OBSERVERS = {
    "observer": ("HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
                 "MovingAveragePerChannelMinMaxObserver", "ObserverBase",
                 "PerChannelMinMaxObserver"),
    "fake_quantize": ("FakeQuantize", "FakeQuantizeBase"),
    "qconfig": ("QConfig",),
}  # fmt: skip

REFUSED = {
    **dict.fromkeys(
        ["onnx.export", "onnx._export", "onnx.dynamo_export", "onnx.load",
         "onnx.register_custom_op_symbolic", "onnx.is_in_onnx_export_context"], _ONNX
    ),
    **dict.fromkeys(
        ["sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor",
         "sparse_bsc_tensor", "sparse_compressed_tensor", "hspmm", "sspaddmm", "smm", "dsmm",
         "optim.SparseAdam", "optim.sparse_adam.SparseAdam", "Tensor.to_sparse_csr",
         "Tensor.to_sparse_csc", "Tensor.to_sparse_bsr", "Tensor.to_sparse_bsc",
         "Tensor.crow_indices",
         "Tensor.col_indices"], _SPARSE
    ),
    **dict.fromkeys(
        ["distributed.init_process_group", "distributed.destroy_process_group",
         "distributed.all_reduce", "distributed.all_gather", "distributed.all_gather_object",
         "distributed.all_gather_into_tensor", "distributed.barrier", "distributed.broadcast",
         "distributed.broadcast_object_list", "distributed.gather", "distributed.scatter",
         "distributed.reduce", "distributed.reduce_scatter", "distributed.send",
         "distributed.recv", "distributed.isend", "distributed.irecv", "distributed.new_group",
         "distributed.get_rank", "distributed.get_world_size", "distributed.get_backend",
         "distributed.monitored_barrier", "distributed.all_to_all",
         "distributed.all_to_all_single", "distributed.all_gather_coalesced",
         "distributed.all_reduce_coalesced", "distributed.batch_isend_irecv",
         "distributed.gather_object", "distributed.scatter_object_list",
         "distributed.reduce_scatter_tensor", "distributed.send_object_list",
         "distributed.recv_object_list", "distributed.new_subgroups",
         "distributed.split_group", "distributed.init_device_mesh", "distributed.rendezvous",
         "distributed.get_process_group_ranks", "distributed.get_global_rank",
         "distributed.get_group_rank", "distributed.TCPStore", "distributed.FileStore",
         "distributed.HashStore", "distributed.P2POp",
         *[f"distributed.nn.{part}{name}" for part in ("", "functional.")
           for name in ("all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce",
                        "reduce_scatter", "scatter")],
         "nn.parallel.DistributedDataParallel",
         "nn.parallel.distributed.DistributedDataParallel", "multiprocessing.spawn",
         "distributed.optim.ZeroRedundancyOptimizer", "distributed.rpc.init_rpc",
         "distributed.rpc.rpc_async", "distributed.rpc.rpc_sync", "distributed.rpc.remote",
         "distributed.rpc.shutdown", "multiprocessing.start_processes",
         "multiprocessing.spawn.spawn", "multiprocessing.spawn.start_processes",
         *[f"distributed.fsdp.{file}{name}" for name in _SHARDING
           for file in ("", "api.", "fully_sharded_data_parallel.")],
         *[f"distributed.fsdp.{name}" for name in (
             "FSDPModule", "fully_shard", "MixedPrecisionPolicy",
             "fully_sharded_data_parallel.FullyShardedDataParallel", "FullyShardedDataParallel",
             "wrap.transformer_auto_wrap_policy", "wrap.size_based_auto_wrap_policy",
             "wrap.enable_wrap", "wrap.wrap")],
         "distributed._composable.fsdp.FSDPModule", "distributed._composable.fsdp.fully_shard",
         "distributed._tensor.experimental.implicit_replication",
         "distributed.tensor.experimental.implicit_replication",
         *[f"distributed.tensor.{name}" for name in (
             "DTensor", "Replicate", "Shard", "distribute_module", "distribute_tensor",
             "parallel.parallelize_module", "parallel.ColwiseParallel",
             "parallel.RowwiseParallel")],
         "distributed.device_mesh.DeviceMesh", "distributed.device_mesh.init_device_mesh",
         "distributed.checkpoint.save", "distributed.checkpoint.load"],
        _PROCESSES
    ),
    **dict.fromkeys(
        [*[f"nn.parallel.{part}{name}" for part in ("", "scatter_gather.")
           for name in ("scatter", "gather", "scatter_kwargs")],
         *[f"nn.parallel.{part}{name}" for name in ("replicate", "parallel_apply")
           for part in ("", f"{name}.")],
         *[f"{home}.comm.{name}" for home in ("cuda", "nn.parallel")
           for name in ("broadcast", "broadcast_coalesced", "gather", "reduce_add", "scatter")]],
        "there are no GPUs to divide a batch over",
    ),
    **dict.fromkeys(
        ["quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic",
         *[f"{home}.{name}" for home in ("quantization", "ao.quantization")
           for name in ("quantize_dynamic", "prepare", "prepare_qat", "convert", "quantize",
                        "quantize_qat", "fuse_modules", "fuse_modules_qat", "get_default_qconfig",
                        "get_default_qat_qconfig", "QuantStub", "DeQuantStub", "QuantWrapper")],
         *[f"{home}.{file}{name}" for home in ("quantization", "ao.quantization")
           for inner, names in _OBSERVERS.items() for file in ("", f"{inner}.") for name in names],
         *[f"nn.quantized.{name}" for name in (
             "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "Embedding", "Linear")],
         "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine",
         "dequantize", "Tensor.dequantize", "Tensor.int_repr", "Tensor.q_scale",
         "Tensor.q_zero_point"], _QUANTISED
    ),
    **dict.fromkeys(
        ["hub.load", "hub.list", "hub.help", "hub.download_url_to_file",
         "hub.load_state_dict_from_url", "utils.model_zoo.load_url"], _NETWORK
    ),
    **dict.fromkeys(
        ["export.export", "export.save", "export.load", "export.draft_export", "export.unflatten",
         "export.register_dataclass", "export.Dim", "export.dims",
         "utils.mobile_optimizer.optimize_for_mobile", "package.PackageExporter",
         "package.PackageImporter", "fx.symbolic_trace", "fx.Interpreter", "fx.Transformer",
         "jit.save", "jit.load", "jit._get_trace_graph"], _EXPORT
    ),
    "quasirandom.SobolEngine": "there is no table of direction numbers here; scipy.stats.qmc.Sobol "
    "has one, or draw by torch.rand",
    "utils._python_dispatch.TorchDispatchMode": "calls are recorded whole, and none are "
    "dispatched below them; overrides.TorchFunctionMode sees the calls",
    **dict.fromkeys(
        ["nn.attention.flex_attention.flex_attention", "nn.attention.flex_attention.AuxRequest",
         "nn.attention.flex_attention.create_block_mask"],
        "give the mask to scaled_dot_product_attention"
    ),
    **dict.fromkeys(
        [f"utils.cpp_extension.{name}" for name in (
            "load", "load_inline", "CppExtension", "CUDAExtension", "SyclExtension",
            "BuildExtension", "include_paths", "library_paths", "verify_ninja_availability")],
        "extensions in C++ and CUDA need PyTorch's own library; write the operator with operators, "
        "which are compiled"
    ),
    **dict.fromkeys(
        [f"nested.{name}" for name in ("nested_tensor", "as_nested_tensor", "to_padded_tensor",
                                       "nested_tensor_from_jagged")],
        "there are no tensors of rows of different lengths; use pad_sequence or PackedSequence"
    ),
}  # fmt: skip
