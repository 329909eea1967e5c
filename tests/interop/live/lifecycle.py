# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces that go and come back, restarts, an idle program, and capabilities."""

import os
import re
import shutil
import signal
import time

from control import Operator
from net import PROCESSOR, SANITIZED, Skip, check, events, in_host, sh, wait_until

CAPABILITIES = {"dac_override": 1, "net_admin": 12, "net_raw": 13, "sys_admin": 21, "bpf": 39}


def passes(net):
    return " 0% packet loss" in net.host("la", f"ping -q -c 1 -W 0.3 {net.address('lb')}", check=False)


def killed(make, workers):
    net = make(workers=workers)
    net.start()
    for _ in range(3):
        check(" 0% packet loss" in net.ping())
        net.penstock.end(signal.SIGKILL)
        net.start()
    check(" 0% packet loss" in net.ping())
    net.stop()


def port_link(net, state):
    if net.kind.kind == "tap":
        sh(f"ip -n la link set eth0 {state}")
    else:
        sh(f"ip -n gw link set lan {state}")


def check_explanation(operator, net, refused):
    """Of a packet that is to leave by lan."""
    answer = operator.do("explain", "udp", f"{net.address('lb')}:1", f"{net.address('la')}:2", "--in", "wan")
    expected = ["drop", "port_refused"] if refused else ["forward", None]
    check([answer["verdict"], answer["reason"]] == expected, answer)
    check(refused == ("lan" in (answer["refused"] or "")), answer)


def logged(net, level, what):
    """How often the run has said that about an interface."""
    return len(re.findall(rf"Z {level}: interface \S+: {what}$", net.penstock.text(), re.MULTILINE))


def goes_down(make, workers):
    net = make(workers=workers, ipv6=False)
    operator = Operator(net)
    net.start(outputs=f", control: {operator.socket}")
    check(passes(net))
    net.serve("la", f"ping -q -i 0.005 {net.address('lb')}")
    net.serve("lb", f"ping -q -i 0.005 {net.address('la')}")
    for _ in range(3):
        time.sleep(0.1)
        port_link(net, "down")
        time.sleep(0.1)
        check(not passes(net), "a packet passed an interface that is down")
        if net.kind.kind != "dpdk":
            check_explanation(operator, net, refused=True)
        port_link(net, "up")
        if net.kind.kind == "tap":  # the neighbour has been forgotten
            sh(f"ip -n la neigh replace {net.address('lb')} lladdr {net.mac('lb')} dev eth0 nud permanent")
        wait_until(lambda: passes(net), "nothing passes after the interface has come up")
        check_explanation(operator, net, refused=False)
    report = net.stop()
    if net.kind.kind == "dpdk":  # it asks the driver now and then
        check(events(report, "lan")["refused_down"] + events(report, "lan")["send_errors"] > 0, report["ports"]["lan"])
    else:
        check(events(report, "lan")["interface_down"] == 3, report["ports"]["lan"])
        check(logged(net, "warning", "down") == 3, net.penstock.text())
        check(events(report, "lan")["refused_down"] > 0, report["ports"]["lan"])


def starts_down(make):
    """The interfaces are down when the run begins."""
    net = make(workers=2, ipv6=False)
    port_link(net, "down")
    net.start(wait=False)
    time.sleep(0.5)
    port_link(net, "up")
    if net.kind.kind == "tap":
        sh(f"ip -n la neigh replace {net.address('lb')} lladdr {net.mac('lb')} dev eth0 nud permanent")
    wait_until(lambda: passes(net), "nothing passes after the interface has come up")
    net.stop()


def deleted(make, workers):
    """The interface is deleted, and there is another one with its name."""
    net = make(workers=workers, ipv6=False)
    if net.kind.kind == "tap":
        raise Skip("without its interface, a tap port ends")
    net.start()
    check(passes(net))
    net.serve("lb", f"ping -q -i 0.005 {net.address('la')}")
    for _ in range(3):
        time.sleep(0.1)
        sh("ip -n gw link del lan")
        time.sleep(0.1)
        net.kind.link(net, "la", "lan")
        net.configure("la")
        wait_until(lambda: passes(net), "nothing passes after the interface has come back")
    report = net.stop()
    check(events(report, "lan")["interface_deleted"] == 3, report["ports"]["lan"])
    check(events(report, "lan")["interface_returned"] == 3, report["ports"]["lan"])
    check(logged(net, "warning", "deleted") == 3, net.penstock.text())
    check(logged(net, "info", "there again") == 3, net.penstock.text())


def moved_away(make):
    """The interface goes to another namespace and comes back, with the same index."""
    net = make(ipv6=False)
    if net.kind.kind == "tap":
        raise Skip("without its interface, a tap port ends")
    sh("ip netns add spare")
    net.start()
    check(passes(net))
    index = sh("ip -n gw -o link show lan").split(":")[0]
    for _ in range(2):
        sh("ip -n gw link set lan netns spare")
        sh("ip -n spare link set lan netns gw")
        sh("ip -n gw link set lan up")
        check(sh("ip -n gw -o link show lan").split(":")[0] == index, "another index")
        wait_until(lambda: passes(net), "nothing passes after the interface has come back", 5)
    report = net.stop()
    check(events(report, "lan")["interface_returned"] == 2, report["ports"]["lan"])


def tap_deleted(make):
    net = make(ipv6=False)
    if net.kind.kind != "tap":
        raise Skip("only a tap port ends with its interface")
    net.start()
    check(passes(net))
    sh("ip -n la link del eth0")
    status = net.penstock.process.wait(10)
    check(status != 0, "exit status", status)
    check("the interface was deleted during the run" in net.penstock.text(), net.penstock.text())


def mtu_grows(make):
    """Frames that became possible during the run."""
    net = make(ipv6=False)
    net.start()
    check(passes(net))
    for host in net.ports:
        net.kind.set_mtu(net, host, 9000)
    wait_until(lambda: " 0% packet loss" in net.host(
        "la", f"ping -q -c 1 -W 0.3 -s 8900 -M do {net.address('lb')}", check=False), "no long frame passes", 5)
    net.stop()


def tap_moved(make):
    """Interfaces that the run has made, and that are moved to the hosts afterwards."""
    net = make(ipv6=False, tap_moves=True)
    net.start()
    net.kind.move(net)
    wait_until(lambda: passes(net), "nothing passes after the interfaces have been moved", 5)
    net.iperf()
    net.stop()


def processor_time(net):
    with open(f"/proc/{net.penstock.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(make, workers):
    """Less than 2 % of a core, before and after packets, and while an interface is down."""
    net = make(workers=workers, ipv6=False)
    net.start()

    def check_idle(when):
        times = []
        for _ in range(3):
            before = processor_time(net)
            time.sleep(0.75)
            times.append((processor_time(net) - before) / 0.75)
            if times[-1] < 0.02:
                return
        check(SANITIZED or min(times) < 0.02, when, "it used", times)

    check_idle("before packets")
    net.ping(options="-f -c 500 -W 2")
    net.iperf("-P 4", bytes_="10M")
    check_idle("after packets")
    port_link(net, "down")
    check_idle("while an interface is down")
    net.stop()


def thread_capabilities(net):
    """For each thread: its name, and its sets of capabilities."""
    threads = []
    for thread in os.listdir(f"/proc/{net.penstock.pid}/task"):
        with open(f"/proc/{net.penstock.pid}/task/{thread}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        sets = {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")}
        threads.append((status["Name"].strip(), sets))
    return threads


def keeps_few_capabilities(make):
    """In all threads. Only those that reopen an interface can open packet sockets."""
    net = make(workers=2)
    net.start(outputs=f", control: {net.path('control')}")
    check(" 0% packet loss" in net.ping())
    # DPDK's drivers may use them at any time.
    in_run = {"dpdk": ("net_admin", "net_raw")}.get(net.kind.kind, ())
    watches = 0 if net.kind.kind == "dpdk" else len(net.ports)
    threads = thread_capabilities(net)
    check(sum(name == "interface-watch" for name, _ in threads) == watches, threads)
    check(len(threads) >= watches + 4, "workers are missing", threads)
    for thread, sets in threads:
        if PROCESSOR == "gpu" and thread.startswith("cuda"):  # from before the ports were known (docs/live.md)
            continue
        allowed = sum(1 << CAPABILITIES[name] for name in (*in_run, "dac_override"))
        if net.kind.kind == "af_packet" and thread == "interface-watch":
            allowed = 1 << CAPABILITIES["net_raw"]
        for name, value in sets.items():
            check(value & ~allowed == 0, thread, name, hex(value), "allowed", hex(allowed))
    net.stop()


def as_nobody(net, *capabilities):
    """The prefix by which the program runs as another user, with these capabilities."""
    if os.geteuid() != 0 or open("/proc/self/uid_map").read().split()[2] == "1":
        raise Skip("there is no other user here")
    # The program may be in a home directory. A bundle has its libraries in lib/ beside its bin/.
    place = net.path("copy/bin/penstock")
    if net.program != place:
        libraries = os.path.join(os.path.dirname(net.program), "../lib")
        os.makedirs(os.path.dirname(place))
        if os.path.isdir(libraries):
            shutil.copytree(libraries, net.path("copy/lib"))
        shutil.copy(net.program, place)
        os.chmod(place, 0o755)
        os.chmod(net.directory, 0o777)
        net.program = place
    sets = "".join(f",+{capability}" for capability in capabilities)
    return ("setpriv --reuid=nobody --regid=nogroup --clear-groups "
            f"--inh-caps=-all{sets} --ambient-caps=-all{sets} --bounding-set=-all{sets}")


def unprivileged(make, workers):
    """As another user with CAP_NET_RAW alone, and without it."""
    net = make(workers=workers)
    if net.kind.kind != "af_packet":
        raise Skip("only packet sockets need just CAP_NET_RAW")
    net.start(prefix=as_nobody(net), wait=False)
    check(net.penstock.process.wait(10) != 0, "it runs without the capability")
    text = net.penstock.text()
    check("CAP_NET_RAW" in text and "setcap" in text, text)
    net.start(prefix=as_nobody(net, "net_raw"))
    check(all(sets["CapEff"] & ~(1 << CAPABILITIES["net_raw"]) == 0 for _, sets in thread_capabilities(net)))
    for version in (4, 6):
        check(" 0% packet loss" in net.ping(version=version))
    net.iperf(bytes_="10M")
    net.stop()


def second_run(make):
    """On the same interfaces: the kernel allows it, and each packet would be forwarded twice."""
    net = make()
    listener = net.serve("gw", "tcpdump -i lan -w /dev/null")
    # While it opens its socket, it looks like a program that sends.
    wait_until(lambda: "listening on" in listener.text(), "tcpdump does not listen")
    net.start(wait=False)
    wait_until(net.has_worker, "the first run does not begin")
    first = net.penstock
    warning = "another program sends through this interface too: found 'lan'"
    check(warning not in first.text(), "tcpdump only listens", first.text())
    net.start(wait=False)
    wait_until(net.has_worker, "the second run does not begin")
    check(net.penstock.text().count(warning) == 1, net.penstock.text())
    net.stop()
    check(warning not in first.text() and first.is_running(), first.text())
    first.end()
    listener.end()


SCENARIOS = {
    "Killed1": lambda make: killed(make, 1),
    "Killed2": lambda make: killed(make, 2),
    "GoesDown1": lambda make: goes_down(make, 1),
    "GoesDown2": lambda make: goes_down(make, 2),
    "MtuGrows": mtu_grows,
    "TapMoved": tap_moved,
    "StartsDown": starts_down,
    "Deleted1": lambda make: deleted(make, 1),
    "Deleted2": lambda make: deleted(make, 2),
    "MovedAway": moved_away,
    "TapDeleted": tap_deleted,
    "Idle1": lambda make: idle(make, 1),
    "Idle2": lambda make: idle(make, 2),
    "Capabilities": keeps_few_capabilities,
    "SecondRun": second_run,
    "Unprivileged1": lambda make: unprivileged(make, 1),
    "Unprivileged2": lambda make: unprivileged(make, 2),
}
