# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""FRR on the gateway and on its neighbours (kernel_routes.py shows the network). The gateway learns lb's and lc's networks by
OSPF, and la learns all of them from it; Penstock forwards. When lb withdraws its network, lc's takes its place."""

import os
import signal

from kernel_routes import ROUTER, answers, gateway_of, received_by, wait_for, wait_for_silence
from net import Background, Skip, check, sh, wait_until

FRR = "/usr/lib/frr"
ROUTER_IDS = {"la": "10.1.0.1", "gw": "10.1.0.254", "lb": "10.2.0.2", "lc": "10.3.0.3"}


class Frr:
    """zebra and ospfd in a host's namespace."""

    def __init__(self, net, host, costs):
        """`costs`: of its interfaces."""
        self.net, self.host = net, host
        self.directory = net.path(f"frr-{host}")
        os.makedirs(self.directory)
        text = f"hostname {host}\n"
        for interface, cost in costs.items():
            text += (f"interface {interface}\n ip ospf area 0\n ip ospf cost {cost}\n ip ospf hello-interval 1\n"
                     f" ip ospf dead-interval 4\n")
        text += f"router ospf\n ospf router-id {ROUTER_IDS[host]}\n timers throttle spf 10 50 100\n"
        with open(f"{self.directory}/frr.conf", "w") as file:
            file.write(text)
        sh(f"chown -R frr:frr {self.directory} && chmod 755 {net.directory} {self.directory}")
        self.daemons = [self.daemon("zebra"), self.daemon("ospfd")]

    def daemon(self, name):
        common = (f"-f {self.directory}/frr.conf -i {self.directory}/{name}.pid -z {self.directory}/zserv.api "
                  f"--vty_socket {self.directory} -P 0 --log file:{self.directory}/{name}.log")
        daemon = Background(self.host, f"{FRR}/{name} {common}", self.net.path(f"{name}-{self.host}.log"))
        self.net.background.append(daemon)
        if name == "zebra":
            wait_until(lambda: os.path.exists(f"{self.directory}/zserv.api"), f"zebra does not start: {daemon.text()}")
        return daemon

    def show(self, command):
        return self.net.host(self.host, f"vtysh --vty_socket {self.directory} -c '{command}'", check=False)

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.end(signal.SIGTERM)


def frr(make):
    for tool in (f"{FRR}/zebra", f"{FRR}/ospfd", "/usr/bin/vtysh"):
        if not os.path.exists(tool):
            raise Skip(f"FRR is not installed: there is no {tool}")
    net = gateway_of(make)
    for host in ("lb", "lc"):
        sh(f"ip -n {host} addr del 10.99.0.1/32 dev lo && ip -n {host} addr add 10.99.0.1/24 dev lo")
    sh("ip -n la route del default via 10.1.0.254")
    net.start(ROUTER)
    routers = {"gw": Frr(net, "gw", {"lan": 10, "wan": 10, "dmz": 100}), "la": Frr(net, "la", {"eth0": 10}),
               "lb": Frr(net, "lb", {"eth0": 10, "lo": 1}), "lc": Frr(net, "lc", {"eth0": 10, "lo": 1})}

    def learnt(host):
        return "10.99.0." in sh(f"ip -n {host} route show proto ospf")

    try:
        wait_until(lambda: learnt("gw") and learnt("la"), "OSPF does not converge", 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{routers['gw'].show('show ip ospf neighbor')}\n{routers['gw'].show('show ip route')}")
    wait_for(net, "10.99.0.1", "by OSPF's route")
    wait_until(lambda: received_by(net, "lb", "10.99.0.1"), "the nearer network is not used", 10)
    sh("ip -n lb addr del 10.99.0.1/24 dev lo")
    wait_until(lambda: received_by(net, "lc", "10.99.0.1"), "the farther network is not used", 30)
    sh("ip -n lc addr del 10.99.0.1/24 dev lo")
    wait_for_silence(net, "10.99.0.1", "although OSPF has withdrawn its route")
    check(answers(net, "10.2.0.2"), "the others do not go on")
    check(net.host("gw", "cat /proc/sys/net/ipv4/ip_forward").strip() == "0", "FRR has made the kernel forward")
    report = net.stop()
    for router in routers.values():
        router.end()
    kernel = report["functions"][0]["details"]["kernel"]
    check(kernel["malformed"] == 0 and kernel["losses"] == 0, kernel)


SCENARIOS = {"Frr": frr}
