"""One batch shape captured once: later programs are copied into the same memory and run by one graph launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.cuda import plan
from variegate.executors.cuda.executor import CudaExecutor, addresses, setting_of
from variegate.executors.cuda.images import PlacedImages
from variegate.executors.cuda.launch import launches
from variegate.executors.cuda.layout import WORKSPACE
from variegate.executors.cuda.pack import Packed, Packer
from variegate.executors.cuda.room import DoesNotFit, Room
from variegate.program.program import Program


class CapturedRun:
    """Runs fused programs for ``images``, which stay where they are, into ``output``, which is written over by each.

    Args:
        executor: of a CUDA device; of the CPU (the interpreter), the launches are repeated one by one instead.
        programs: samples of what is to come. What needs half as much again as any of them still fits.
        images: the batch; its memory is read by every run.

    Raises ValueError where outputs of a program differ in shape.
    """

    def __init__(self, executor: CudaExecutor, programs: Sequence[Program], images: PlacedImages) -> None:
        self._executor, self._images = executor, images
        with executor.current():
            output, _ = executor.allocate(programs[0])
            if output is None:
                raise ValueError("capture: outputs differ in shape; accepted: a transform that makes them all alike")
            self.output: torch.Tensor = output
            self._targets = addresses(output, [])
            self._room = self._measure(programs)
            memory = executor.memory
            self._canvases = memory.empty(self._room.canvases)
            self._buffer = memory.empty(Packer(programs[0], self._room).needs.buffer)
            self._workspace = memory.empty(programs[0].num_rows * WORKSPACE, torch.int32).zero_()
            packed = self._write(programs[0])
            packed.launches = self._room.launches
            features = self._room.launches[1:-1, plan.FEATURES].tolist()
            setting = setting_of(programs[0], images, executor.block)
            self._launches = launches(packed, setting, self._buffer, self._workspace, features)
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

    def _measure(self, programs: Sequence[Program]) -> Room:
        packers = [Packer(program) for program in programs]
        found = [self._pack(packer, np.empty(packer.needs.uploaded, np.uint8), 0).launches for packer in packers]
        return Room.of(packers, found)

    def _write(self, program: Program) -> Packed:
        """Pack into the fixed memory. Raises DoesNotFit before anything has changed there."""
        packer = Packer(program, self._room)
        staging = self._executor.memory.staging(packer.needs.uploaded)
        packed = self._pack(packer, staging.numpy(), self._canvases.data_ptr())
        room = self._room.launches
        counts_fit = (packed.launches[:, : plan.FEATURES] <= room[:, : plan.FEATURES]).all()
        if not counts_fit or (packed.launches[:, plan.FEATURES] & ~room[:, plan.FEATURES]).any():
            raise DoesNotFit
        self._buffer[: len(staging)].copy_(staging, non_blocking=True)
        return packed

    def _pack(self, packer: Packer, memory: npt.NDArray[np.uint8], canvases: int) -> Packed:
        source, block = packer.program.source, self._executor.block
        images = self._images
        return packer.fill(memory, images.addresses[source], images.strides[source], self._targets, canvases, block)

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
