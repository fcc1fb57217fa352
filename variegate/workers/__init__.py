"""Workers on devices: threads, processes and Ray actors behind one interface, and the scheduling of tasks over them."""
