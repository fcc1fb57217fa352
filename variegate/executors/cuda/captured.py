"""One batch shape captured once: later programs are copied into the same memory and run by one graph launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.cuda.executor import CudaExecutor, addresses, refuse_detours, settings_of
from variegate.executors.cuda.images import DeviceImages
from variegate.executors.cuda.launch import launches
from variegate.executors.cuda.layout import ABILITIES, NUM_ROWS, WORKSPACE
from variegate.executors.cuda.pack import Array, Capacity, DoesNotFit, Packer
from variegate.program.program import Program

# Sections whose size the batch, its passes and its slots decide; all others vary from draw to draw.
_FIXED = frozenset({"headers", "code", "args", "constants", "lists"})
_FIXED |= {"begins", "starts", "last_canvases", "blend_weights", "boxes"}


class CapturedRun:
    """Runs fused programs for ``images``, which stay where they are, into ``output``, which is written over by each.

    Args:
        executor: of a CUDA device; of the CPU (the interpreter), the launches are repeated one by one instead.
        programs: samples of what is to come. What needs half as much again as any of them still fits.
        images: the batch; its memory is read by every run.

    Raises ValueError where outputs of a program differ in shape.
    """

    def __init__(self, executor: CudaExecutor, programs: Sequence[Program], images: DeviceImages) -> None:
        self._executor, self._images = executor, images
        for program in programs:
            refuse_detours(program)
        with executor.current():
            output, _ = executor.allocate(programs[0])
            if output is None:
                raise ValueError("capture: outputs differ in shape; accepted: a transform that makes them all alike")
            self.output: torch.Tensor = output
            self._targets = addresses(output, [])
            self._capacity, self._counts = self._measure(programs)
            memory, packer = executor.memory, Packer(programs[0], self._capacity)
            self._canvases = memory.empty(packer.canvases)
            self._buffer = memory.empty(packer.buffer)
            self._workspace = memory.empty(programs[0].num_rows * WORKSPACE, torch.int32).zero_()
            self._write(programs[0])
            settings = settings_of(programs[0], images, executor.block)
            abilities = self._counts[1:-1, ABILITIES].tolist()
            self._launches = launches(packer, self._counts, settings, self._buffer, self._workspace, abilities)
            self._graph = self._capture()

    def run(self, program: Program) -> bool:
        """Queue the program for ``output`` -> whether it was the graph that ran it.

        A program that does not fit is launched by itself: the same output, with more work for the host.
        """
        with self._executor.current():
            try:
                self._write(program)
            except DoesNotFit:
                stacked, _ = self._executor.run(program, self._images)
                assert stacked is not None
                self.output.copy_(stacked)
                return False
            if self._graph is None:
                self._launch()
            else:
                self._graph.replay()
        return True

    def _measure(self, programs: Sequence[Program]) -> tuple[Capacity, Array]:
        """What these programs of one batch need, and half as much again of what varies from draw to draw; and the
        counts and abilities of the launches that run any of them.
        """
        passes = max(Packer(program).num_passes for program in programs)
        loose = Capacity(passes, max(program.opcode.shape[1] for program in programs))
        packers = [Packer(program, loose) for program in programs]
        packed = np.stack([self._pack(packer, np.empty(packer.uploaded, np.uint8), 0) for packer in packers])
        counts = packed.max(axis=0)
        counts[:, ABILITIES] = np.bitwise_or.reduce(packed[:, :, ABILITIES], axis=0)
        counts[:-1, NUM_ROWS] = np.where(counts[:-1, NUM_ROWS] > 0, programs[0].num_rows, 0)
        sections = {}
        for name in packers[0].sections:
            size = max(packer.sections[name] for packer in packers)
            sections[name] = size if name in _FIXED else size * 3 // 2
        return Capacity(loose.passes, loose.slots, sections), counts

    def _write(self, program: Program) -> None:
        """Pack into the fixed memory. Raises DoesNotFit before anything has changed there."""
        refuse_detours(program)
        packer = Packer(program, self._capacity)
        staging = self._executor.memory.staging(packer.uploaded)
        counts = self._pack(packer, staging.numpy(), self._canvases.data_ptr())
        counts_fit = (counts[:, :ABILITIES] <= self._counts[:, :ABILITIES]).all()
        if not counts_fit or (counts[:, ABILITIES] & ~self._counts[:, ABILITIES]).any():
            raise DoesNotFit
        self._buffer[: len(staging)].copy_(staging, non_blocking=True)

    def _pack(self, packer: Packer, memory: npt.NDArray[np.uint8], canvases: int) -> Array:
        return packer.fill(memory, self._images, self._targets, canvases, self._executor.block)

    def _launch(self) -> None:
        for launch in self._launches:
            launch.run()

    def _capture(self) -> torch.cuda.CUDAGraph | None:
        if self._executor.device.type != "cuda":
            return None
        # Compiled and loaded before: neither may happen while capturing.
        side = torch.cuda.Stream(self._executor.device)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._launch()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._launch()
        return graph
