# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Two hosts in network namespaces, with Penstock between them:

    la: eth0 ──── lan: Penstock in gw :wan ──── eth0: lb

Runs in a network and mount namespace of its own (unshare -nm), so that all of this ends with the process."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time

SKIPPED = 77
SANITIZED = os.environ.get("PENSTOCK_SANITIZED") == "1"
PROCESSOR = os.environ.get("PENSTOCK_PROCESSOR", "cpu")


class Skip(Exception):
    pass


def sh(command, check=True, timeout=60):
    """Runs a command line. Returns what it prints."""
    done = subprocess.run(command, shell=True, text=True, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def wait_until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s: {what}")
        time.sleep(0.02)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


@contextlib.contextmanager
def entering(host):
    """Sockets that this thread opens are the host's."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{host}", os.O_RDONLY)
    try:
        if libc.setns(there, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(here, 0)
        os.close(here)
        os.close(there)


def in_host(host, command):
    return f"nsenter --net=/run/netns/{host} {command}"


class Background:
    """A process that ends with this one."""

    def __init__(self, host, command, output):
        self.output = output
        with open(output, "w") as file:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sh", "-c", "exec " + in_host(host, command)],
                                            stdout=file, stderr=subprocess.STDOUT)

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        with open(self.output) as file:
            return file.read()

    def is_running(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGINT):
        if self.is_running():
            self.process.send_signal(number)
        return self.process.wait(30)


def skip_without_tun():
    if not os.path.exists("/dev/net/tun"):
        raise Skip("there is no /dev/net/tun")


class VethKind:
    """Ports on one end of a veth pair. The other end is the host's eth0."""

    takes_offloads = True  # the hosts may leave work to a NIC
    splits = True  # frames of several segments come
    completes = True  # so do frames without their checksum
    most_copied = 0  # of some hundred frames that are received; the others stay where the port has put them
    counts_losses = True  # all of them
    lost_tags = ()  # VLAN tags that do not pass unchanged
    little_memory, much_memory = ", memory: 1MiB", ", memory: 64MiB"

    def __init__(self, kind, parameters=""):
        self.kind, self.parameters = kind, parameters

    def up(self, net):
        for host, port in net.ports.items():
            self.link(net, host, port)

    def link(self, net, host, port):
        queues = f"numrxqueues {net.workers} numtxqueues {net.workers}"
        net.make_link(f"ip link add eth0 netns {host} {queues} type veth peer name {port} netns {net.gateway} {queues}")
        sh(f"ip -n {net.gateway} link set {port} addrgenmode none mtu {net.mtu} up")
        sh(f"ip -n {host} link set eth0 mtu {net.mtu} up")

    def set_mtu(self, net, host, mtu):
        sh(f"ip -n {net.gateway} link set {net.ports[host]} mtu {mtu} && ip -n {host} link set eth0 mtu {mtu}")

    def port(self, net, host, port):
        return f"{{{self.kind}: {{interface: {port}{self.parameters}{net.port_parameters}}}}}"

    def is_ready(self, net):
        # Each worker has a socket to receive and one to send, at each port. All of them are bound in the end.
        with open(f"/proc/{net.penstock.pid}/net/packet") as file:
            interfaces = [line.split()[4] for line in file.readlines()[1:]]
        if len(interfaces) < 2 * 2 * net.workers or "0" in interfaces:
            return False
        # Until the ports have started, a filter rejects all frames.
        return "bpf filter" not in sh(in_host(net.gateway, "ss -H0b"))


class XdpKind(VethKind):
    """In native mode, the other end is not allowed to send frames of several segments."""

    def __init__(self, mode):
        super().__init__("af_xdp", f", mode: {mode}")
        self.splits = mode == "generic"

    def is_ready(self, net):
        # The program is there before frames are handed over, which the first worker's thread shows.
        if not all("xdp" in sh(f"ip -n {net.gateway} link show {port}") for port in net.ports.values()):
            return False
        time.sleep(0.1)
        return True


class TapKind:
    """Ports that are the hosts' eth0."""

    kind = "tap"
    takes_offloads = True
    splits = completes = counts_losses = True
    most_copied = None
    lost_tags = ()
    little_memory = much_memory = ""

    def up(self, net):
        skip_without_tun()
        if net.tap_moves:
            return
        for host in net.ports:
            net.make_link(f"ip -n {host} tuntap add dev eth0 mode tap {'multi_queue' if net.workers > 1 else ''} vnet_hdr")
            sh(f"ip -n {host} link set eth0 mtu {net.mtu} up")

    def set_mtu(self, net, host, mtu):
        sh(f"ip -n {host} link set eth0 mtu {mtu}")

    def port(self, net, host, port):
        place = f"interface: {port}" if net.tap_moves else f"interface: eth0, netns: {host}"
        return f"{{tap: {{{place}{net.port_parameters}}}}}"

    def move(self, net):
        for host, port in net.ports.items():
            sh(f"ip -n {net.gateway} link set {port} down && ip -n {net.gateway} link set {port} name eth0 netns {host}")
            sh(f"ip -n {host} link set eth0 up")
            net.configure(host)

    def is_ready(self, net):
        if net.tap_moves:
            return all("LOWER_UP" in sh(f"ip -n {net.gateway} link show {port}", check=False) for port in net.ports.values())
        return all("LOWER_UP" in sh(f"ip -n {host} link show eth0") for host in net.ports)


class DpdkKind(VethKind):
    """The same, through DPDK's driver for packet sockets. The driver neither reports what the hosts leave to a NIC, nor
    how many frames did not fit in its ring."""

    takes_offloads = splits = completes = counts_losses = False
    most_copied = 5  # their buffers cross the ends of DPDK's pieces of memory
    lost_tags = ("802.1ad",)  # it becomes 802.1Q
    little_memory = much_memory = ""

    def __init__(self):
        super().__init__("dpdk")

    def up(self, net):
        if not os.path.exists(os.path.join(os.path.dirname(net.program), "lib", "libpenstock_dpdk.so")):
            raise Skip("built without DPDK")
        super().up(net)

    def link(self, net, host, port):
        super().link(net, host, port)
        net.host(host, "ethtool -K eth0 tx off")

    def port(self, net, host, port):
        device = f"net_af_packet_{port},iface={port},qpairs={net.workers}"
        return f'{{dpdk: {{device: "{device}", eal: [--no-huge]{net.port_parameters}}}}}'

    def is_ready(self, net):
        return net.has_worker()


class DpdkTapKind(DpdkKind):
    """TAP interfaces that DPDK makes, with bridges to the hosts. The kernel completes what the hosts send, since these
    interfaces ask for no offloads."""

    takes_offloads = True
    lost_tags = ()

    def up(self, net):
        skip_without_tun()
        super().up(net)

    def link(self, net, host, port):
        net.make_link(f"ip link add eth0 netns {host} type veth peer name to_{host} netns {net.gateway}")
        net.make_link(f"ip -n {net.gateway} link add bridge_{port} type bridge mcast_snooping 0")
        net.host(net.gateway, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        sh(f"ip -n {net.gateway} link set to_{host} master bridge_{port} up")
        sh(f"ip -n {net.gateway} link set bridge_{port} up")
        sh(f"ip -n {host} link set eth0 up")

    def port(self, net, host, port):
        return f'{{dpdk: {{device: "net_tap_{port},iface={port}", eal: [--no-huge]{net.port_parameters}}}}}'

    def is_ready(self, net):
        if not net.has_worker():
            return False
        for port in net.ports.values():
            sh(f"ip -n {net.gateway} link set {port} master bridge_{port}")
        return True


KINDS = {
    "af_packet": VethKind("af_packet"),
    "af_xdp": XdpKind("native"),
    "af_xdp_generic": XdpKind("generic"),
    "tap": TapKind(),
    "dpdk": DpdkKind(),
    "dpdk_tap": DpdkTapKind(),
}


class Net:
    # The gateway's MAC addresses, for chains with a router.
    MACS = {"lan": "02:00:00:00:01:01", "wan": "02:00:00:00:02:01"}
    more_ports = ""  # of the chain
    processor = PROCESSOR
    HOST_MACS = {"la": "02:00:00:00:00:0a", "lb": "02:00:00:00:00:0b"}

    def __init__(self, kind, directory, program, workers=1, mtu=1500, routed=False, ipv6=True, port_parameters="",
                 tap_moves=False, gateway="gw", ports=(("la", "lan"), ("lb", "wan")), folder=""):
        """With `gateway`, `ports` and `folder`, there can be several of them at once; see tunnels.py."""
        self.kind, self.directory, self.program = KINDS[kind], os.path.join(directory, folder), program
        os.makedirs(self.directory, exist_ok=True)
        self.gateway, self.ports = gateway, dict(ports)
        self.workers, self.mtu, self.routed, self.port_parameters = workers, mtu, routed, port_parameters
        self.addresses = {"la": ("10.1.0.1", "fd01::1"), "lb": ("10.2.0.2", "fd02::2") if routed else ("10.1.0.2", "fd01::2")}
        self.ipv6, self.tap_moves = ipv6, tap_moves
        self.penstock = None
        self.background = []
        self.runs = 0
        for host in (*self.ports, self.gateway):
            # Namespaces inherit whether the kernel forwards from a machine that does, such as one with containers.
            sh(f"ip netns add {host} && ip -n {host} link set lo up && ip netns exec {host} sysctl -qw net.ipv4.ip_forward=0")
        self.kind.up(self)
        for host in self.ports:
            if not tap_moves:
                self.configure(host)

    def remove(self):
        """So that there can be another one."""
        for server in self.background:
            server.end(signal.SIGKILL)
        for host in (*self.ports, self.gateway):
            sh(f"ip netns del {host}")

    def make_link(self, command):
        done = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Skip(f"{command}: {done.stdout}")

    def configure(self, host):
        sh(f"ip -n {host} link set eth0 addrgenmode none")
        if host not in self.addresses:
            return
        ipv4, ipv6 = self.addresses[host]
        other = "lb" if host == "la" else "la"
        sh(f"ip -n {host} link set eth0 address {self.mac(host)}")
        if not self.ipv6:  # then the hosts send nothing by themselves: no reports of multicast groups
            sh(in_host(host, "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1"))
        sh(f"ip -n {host} addr add {ipv4}/24 dev eth0")
        if self.ipv6:
            sh(f"ip -n {host} addr add {ipv6}/64 dev eth0 nodad")
        if self.routed:
            gates = ("10.1.0.254", "fd01::fe") if host == "la" else ("10.2.0.254", "fd02::fe")
            for gate in gates[:2 if self.ipv6 else 1]:
                sh(f"ip -n {host} neigh replace {gate} lladdr {self.MACS[self.ports[host]]} dev eth0 nud permanent")
                sh(f"ip -n {host} route add default via {gate}")
        else:
            for address in self.addresses[other][:2 if self.ipv6 else 1]:
                sh(f"ip -n {host} neigh replace {address} lladdr {self.mac(other)} dev eth0 nud permanent")

    def mac(self, host):
        return self.HOST_MACS[host]

    def address(self, host, version=4):
        return self.addresses[host][0 if version == 4 else 1]

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def router(self):
        """The router of a routed chain, with its files."""
        self.write("routes", "10.1.0.0/24 dev lan\n10.2.0.0/24 dev wan\nfd01::/64 dev lan\nfd02::/64 dev wan\n")
        self.write("neighbours", "".join(f"{address} dev {port} lladdr {self.mac(host)} PERMANENT\n"
                                         for host, port in self.ports.items() for address in self.addresses[host]))
        return ("  - router: {routes: routes, neighbours: neighbours, macs: {"
                + ", ".join(f'{port}: "{mac}"' for port, mac in self.MACS.items()) + "}}\n")

    def start(self, chain="", run="", outputs="", prefix="", wait=True, options=""):
        """Starts Penstock, and waits until it takes packets."""
        self.runs += 1
        self.report_path = self.path(f"report-{self.runs}.json")
        text = "ports:\n" + "".join(f"  {port}: {self.kind.port(self, host, port)}\n" for host, port in self.ports.items())
        text += self.more_ports
        text += "wire: {lan: wan, wan: lan}\n"
        text += f"chain:\n{chain or '  - filter: {expression: not tcp port 9, match: forward}' + chr(10)}"
        text += f"run: {{processor: {self.processor}, workers: {self.workers}{run}}}\n"
        text += f"outputs: {{report: {self.report_path}{outputs}}}\n"
        chain_path = self.chain_path = self.write(f"chain-{self.runs}.yaml", text)
        self.penstock = Background(self.gateway, f"{prefix} {self.program} run {options} {chain_path}", self.path(f"penstock-{self.runs}.log"))
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self):
        def ready():
            if not self.penstock.is_running():
                raise AssertionError("Penstock has ended: " + self.penstock.text())
            return self.kind.is_ready(self)
        wait_until(ready, "Penstock does not receive")

    def has_worker(self):
        """Workers begin when all ports have started."""
        return "worker-0" in sh(f"cat /proc/{self.penstock.pid}/task/*/comm", check=False).split()

    def stop(self):
        """Ends Penstock. Returns its report."""
        status = self.penstock.end()
        if status != 0:
            raise AssertionError(f"Penstock: exit status {status}\n{self.penstock.text()}")
        with open(self.report_path) as file:
            report = json.load(file)
        check(report["processor"] == self.processor, "it ran on", report["processor"])
        return report

    def serve(self, host, command, port=None, version=4):
        """Starts a server, and waits until it listens on a TCP port."""
        server = Background(host, command, self.path(f"server-{len(self.background)}.log"))
        self.background.append(server)
        if port is not None:
            def listens():
                if not server.is_running():
                    raise AssertionError(f"{command}: {server.text()}")
                return f":{port} " in sh(in_host(host, "ss -Hltn"))
            wait_until(listens, f"{command} does not listen: {server.text()}")
        return server

    def host(self, host, command, check=True, timeout=60):
        return sh(in_host(host, command), check, timeout)

    def offloads(self, on, hosts=("la", "lb")):
        state = "on" if on and self.kind.takes_offloads else "off"
        for host in hosts:
            for feature in ("tx", "sg", "tso", "gso", "gro"):
                self.host(host, f"ethtool -K eth0 {feature} {state}", check=False)

    def sent(self, host):
        return json.loads(sh(f"ip -n {host} -j -s link show eth0"))[0]["stats64"]["tx"]["packets"]

    def received(self, host):
        return json.loads(sh(f"ip -n {host} -j -s link show eth0"))[0]["stats64"]["rx"]["packets"]

    def ping(self, source="la", target="lb", options="-c 5 -i 0.2 -W 2", version=4):
        """ping waits for the last reply as long as an interval or two round trips, and for `-W` only if none has come."""
        return self.host(source, f"ping -{version} -q {options} {self.address(target, version)}")

    def iperf(self, options="", version=4, bytes_="15M", server="lb", client="la"):
        """Moves `bytes_`. Returns iperf3's results."""
        serving = self.serve(server, "iperf3 -s -1 -p 5201", 5201)
        out = self.host(client, f"iperf3 -{version} -J -c {self.address(server, version)} -p 5201 -n {bytes_} {options} 2>/dev/null")
        wait_until(lambda: not serving.is_running(), "the server does not end")  # and leave its port to the next one
        return json.loads(out)["end"]


# What may happen on a machine that is too slow, or when the run ends: the hosts may send something by themselves.
EXPECTED_LOSSES = ("receive_ring_full", "worker_ring_full", "left_at_the_end")


def lost(report, port):
    """Packets that came to the port and that no worker got."""
    return sum(report["ports"][port]["lost"].values())


def spoilt(report, port):
    """Those of them that would be lost on a fast machine too."""
    return lost(report, port) - sum(report["ports"][port]["lost"].get(name, 0) for name in EXPECTED_LOSSES)


def received_by(report, port):
    return report["ports"][port]["in"]["packets"]


def events(report, port):
    return report["ports"][port]["events"]


def frames_received_by(report, port):
    """As `received_by`, but segments of a frame that was split count as the one frame that the host sent."""
    counts = events(report, port)
    return received_by(report, port) - counts.get("segments", 0) + counts.get("frames_split", 0)


def memory_kib(net):
    """The memory that the process has asked for, and the part that it has used so far: pages of rings and of flow
    tables, which are allocated at the start, are first used when so many packets wait, or so many flows are known."""
    with open(f"/proc/{net.penstock.pid}/status") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return {"allocated": int(sizes["VmData"].split()[0]), "used": int(sizes["VmRSS"].split()[0])}
