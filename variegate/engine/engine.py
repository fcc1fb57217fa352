from variegate.engine.dispatcher import Dispatcher
from variegate.engine.drive import drive
from variegate.engine.rules import Rules


class Engine:
    def __init__(
        self,
        devices="auto",
        workers="process",
        allocation="least_loaded",
        steal=True,
        ordered=True,
        *,
        num_threads=None,
        address=None,
        heartbeat_timeout=120.0,
    ):
        self.devices = ("cpu:0",) if devices == "auto" else tuple(devices)
        self.workers = workers
        self.allocation = allocation
        self.steal = steal
        self.ordered = ordered
        self.num_threads = num_threads or 1
        self.executor = "cpu"

    def run(self, work, feed, *, ordered=None, max_items=1 << 62, stop=None, on_turn=None):
        from variegate.engine.workers.process import ProcessWorkers
        from variegate.engine.workers.thread import ThreadWorkers

        kind = ThreadWorkers if self.workers == "thread" else ProcessWorkers
        w = kind(work, ["cpu"] * len(self.devices), self.num_threads)
        d = Dispatcher(
            self.devices,
            Rules(self.allocation, self.steal, self.ordered if ordered is None else ordered, max_items=max_items),
        )
        return drive(w, d, feed, stop=stop, on_turn=on_turn)
