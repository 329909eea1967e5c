# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""A router with the routes and neighbours of its kernel:

    la: eth0 ──── lan: Penstock in gw :wan ──── eth0: lb
                                      :dmz ──── eth0: lc

The gateway's interfaces have addresses, and its kernel answers ARP and neighbour discovery. No neighbour is static. The
address 10.99.0.1 is both of lb's and of lc's."""

from control import Operator
from net import check, sh, wait_until

GATEWAY = {"lan": ("10.1.0.254", "fd01::fe"), "wan": ("10.2.0.254", "fd02::fe"), "dmz": ("10.3.0.254", "fd03::fe")}
HOSTS = {"la": ("10.1.0.1", "fd01::1"), "lb": ("10.2.0.2", "fd02::2"), "lc": ("10.3.0.3", "fd03::3")}
PORTS = {"la": "lan", "lb": "wan", "lc": "dmz"}
ANYCAST = ("10.99.0.1", "fd99::1")
ROUTER = "  - router: {routes: kernel, neighbours: kernel}\n"


def gateway_of(make, forwarding=0, **shape):
    net = make(routed=True, ports=tuple(PORTS.items()), **shape)
    net.host("gw", f"sysctl -qw net.ipv4.ip_forward={forwarding} net.ipv6.conf.all.forwarding={forwarding}")
    for host, port in PORTS.items():
        addresses, gates = HOSTS[host], GATEWAY[port]
        if host == "lc":
            sh(f"ip -n {host} addr add {addresses[0]}/24 dev eth0; ip -n {host} addr add {addresses[1]}/64 dev eth0 nodad")
        for gate in gates:
            sh(f"ip -n {host} neigh del {gate} dev eth0", check=False)
            sh(f"ip -n {host} route replace default via {gate}")
        # Without a link-local address, the kernel asks for no IPv6 neighbours by itself.
        sh(f"ip -n gw link set {port} down && ip -n gw link set {port} addrgenmode eui64 up")
        sh(f"ip -n gw addr add {gates[0]}/24 dev {port}; ip -n gw addr add {gates[1]}/64 dev {port} nodad")
    for host in ("lb", "lc"):
        sh(f"ip -n {host} addr add {ANYCAST[0]}/32 dev lo; ip -n {host} addr add {ANYCAST[1]}/128 dev lo")
    return net


def answers(net, address, host="la"):
    return " 0% packet loss" in net.host(host, f"ping -q -c 1 -W 0.3 {address}", check=False)


def wait_for(net, address, what):
    wait_until(lambda: answers(net, address), f"{address} does not answer {what}", 10)


def wait_for_silence(net, address, what):
    wait_until(lambda: not answers(net, address), f"{address} answers {what}", 10)


def received_by(net, host, address):
    """Whether this host gets the packets to an address."""
    before = net.received(host)
    net.host("la", f"ping -q -c 20 -i 0.01 -W 0.3 {address}", check=False)
    return net.received(host) >= before + 20


def gateway_routes(net, *commands):
    for command in commands:
        sh(f"ip -n gw {'-6 ' if 'fd' in command else ''}{command}")


def follows_changes(make, **shape):
    net = gateway_of(make, **shape)
    net.start(ROUTER)
    for version in (0, 1):
        check(answers(net, GATEWAY["lan"][version]), "the gateway itself does not answer")
        wait_for(net, HOSTS["lb"][version], "although it is on the link")
        address, prefix = ANYCAST[version], ("10.99.0.0/16", "fd99::/16")[version]
        check(not answers(net, address), "there is no route")
        gateway_routes(net, f"route add {prefix} via {HOSTS['lb'][version]}")
        wait_for(net, address, "after a route was added")
        gateway_routes(net, f"route replace {prefix} via {HOSTS['lc'][version]}")
        wait_until(lambda: received_by(net, "lc", address), "the replaced route is not used", 10)
        gateway_routes(net, f"route add blackhole {address}")
        wait_for_silence(net, address, "through a blackhole")
        gateway_routes(net, f"route del blackhole {address}", f"route del {prefix}")
        wait_for_silence(net, address, "although its route was deleted")
    drops = net.stop()["functions"][0]["dropped"]["reasons"]
    check(drops["no_route"] > 0 and drops["blackhole"] > 0, drops)


def links_and_objects(make):
    net = gateway_of(make)
    gateway_routes(net, "nexthop add id 1 via 10.2.0.2 dev wan", "nexthop add id 2 via 10.3.0.3 dev dmz",
                   "nexthop add id 10 group 1", "route add 10.99.0.0/16 nhid 10",
                   "route add 10.98.0.0/16 via 10.2.0.2 metric 10", "route add 10.98.0.0/16 via 10.3.0.3 metric 20")
    for host in ("lb", "lc"):
        sh(f"ip -n {host} addr add 10.98.0.1/32 dev lo")
    net.start(ROUTER)
    wait_for(net, "10.99.0.1", "through a nexthop object")
    check(received_by(net, "lb", "10.99.0.1"))
    gateway_routes(net, "nexthop replace id 10 group 2")
    wait_until(lambda: received_by(net, "lc", "10.99.0.1"), "the replaced nexthop group is not used", 10)
    gateway_routes(net, "nexthop replace id 10 group 1,3/2,1")
    wait_until(lambda: received_by(net, "lb", "10.98.0.1"), "the route with the best metric is not used", 10)
    gateway_routes(net, "link set wan down")
    wait_until(lambda: received_by(net, "lc", "10.98.0.1"), "the second-best route is not used, with the link down", 10)
    wait_until(lambda: received_by(net, "lc", "10.99.0.1"), "the other next hop is not used", 10)
    gateway_routes(net, "link set wan up", "route add 10.98.0.0/16 via 10.2.0.2 metric 10")
    wait_until(lambda: received_by(net, "lb", "10.98.0.1"), "a new route is not used", 10)
    net.stop()


def neighbours_change(make):
    net = gateway_of(make)
    net.start(ROUTER)
    wait_for(net, HOSTS["lb"][0], "although it is on the link")
    sh("ip -n lb link set eth0 down && ip -n lb link set eth0 address 02:00:00:00:00:99 up && "
       "ip -n lb route replace default via 10.2.0.254")
    wait_for(net, HOSTS["lb"][0], "with its new MAC address")
    sh("ip -n lb link set eth0 down")
    wait_for_silence(net, HOSTS["lb"][0], "although it is down")
    report = net.stop()
    check(report["functions"][0]["details"]["kernel"]["neighbours_asked_for"] > 0, report["functions"][0])


def reloads(make):
    """The routes stay through a reload and a rollback, and go on being followed."""
    net = gateway_of(make)
    control = net.path("control.sock")
    net.start(ROUTER, outputs=f", control: {control}")
    check("past the chain" not in net.penstock.text(), net.penstock.text())
    wait_for(net, HOSTS["lb"][0], "although it is on the link")
    chain = net.path("chain-1.yaml")
    with open(chain) as file:
        text = file.read()
    with open(chain, "w") as file:
        file.write(text.replace("neighbours: kernel}", "neighbours: kernel, drop_martians: false}"))

    def control_by(command):
        out = net.host("gw", f"{net.program} ctl --socket {control} {command}")
        check(answers(net, HOSTS["lb"][0]), "after", command, out)
        gateway_routes(net, "route add 10.99.0.0/16 via 10.2.0.2")
        wait_for(net, ANYCAST[0], f"after {command} and a new route")
        gateway_routes(net, "route del 10.99.0.0/16")
        wait_for_silence(net, ANYCAST[0], f"after {command}, although its route was deleted")

    control_by("reload")
    gateway_routes(net, "route add 10.99.0.0/16 via 10.3.0.3")  # the former tables do not follow
    wait_for(net, ANYCAST[0], "after a new route")
    gateway_routes(net, "route del 10.99.0.0/16")
    wait_for_silence(net, ANYCAST[0], "although its route was deleted")
    control_by("rollback")
    control_by("rollback")
    net.stop()


def icmp_errors(make, **shape):
    """The kernel may forward, but a firewall drops what it would forward: it then sends the errors, and nothing twice."""
    net = gateway_of(make, forwarding=1, **shape)
    net.host("gw", "iptables -P FORWARD DROP")
    net.host("gw", "ip6tables -P FORWARD DROP")
    net.start(ROUTER)
    # An AF_XDP port takes the frames that are not for the host away from the kernel.
    warned = 2 * len(PORTS) if net.kind.kind == "af_packet" else 0
    check(net.penstock.text().count("past the chain") == warned, net.penstock.text())
    for version, host in enumerate(HOSTS["lb"]):
        wait_for(net, host, "although it is on the link")
        out = net.host("la", f"ping -c 3 -i 0.2 -W 1 -t 1 {host}", check=False)
        check("exceeded" in out, "no error for a packet whose TTL ends here", out)
        out = net.host("la", f"ping -c 5 -i 0.05 -W 1 {host}", check=False)
        check(" 0% packet loss" in out and "duplicate" not in out, out)
    net.stop()


# With af_xdp, the kernel gets only what is for it.
SHARED = {"port_parameters": ", for_host: kernel"}

def warnings(make):
    """Of what weakens the chain, at the start and later."""
    net = gateway_of(make)
    operator = Operator(net)

    def starts(parameters):
        net.start(f"  - router: {{routes: kernel, neighbours: kernel{parameters}}}\n", outputs=f", control: {operator.socket}")

    def says(text):
        return any(text in caution["message"] for caution in operator.do("status")["cautions"])

    starts(", table: 4711")
    wait_until(lambda: "table 4711 has no routes" in net.penstock.text(), "nothing said of an empty table", 10)
    net.stop()
    starts(", most_routes: 1")
    wait_until(lambda: "more than most_routes (1)" in net.penstock.text(), "nothing said of routes that are left out", 10)
    net.stop()

    starts("")
    check("warning" not in net.penstock.text(), net.penstock.text())
    forwards = "the kernel forwards the packets"
    check(not says(forwards))
    net.host("gw", "sysctl -qw net.ipv4.conf.lan.forwarding=1")
    check(says(forwards))
    net.host("gw", "sysctl -qw net.ipv4.conf.lan.forwarding=0")
    check(not says(forwards))
    takes = "the kernel takes the frames"
    sh("ip -n gw link add bridge type bridge && ip -n gw link set wan master bridge")
    check(says(takes))
    sh("ip -n gw link set wan nomaster")
    check(not says(takes))
    net.stop()


def rules_ask_for_routes(make):
    """A firewall drops what comes by another port than the one that leads back, also when routes change."""
    net = gateway_of(make)
    operator = Operator(net)

    def write_rules(more):
        net.write("strict.nft", "table inet gate {\n chain forward {\n  type filter hook forward priority filter\n"
                                f"  fib saddr . iif oif missing drop\n  {more}\n }}\n}}\n")

    write_rules("")
    addresses = ", ".join(f"{port}: {v4}/24 {v6}/64" for port, (v4, v6) in GATEWAY.items())
    net.start(f"  - firewall: {{rules: strict.nft, addresses: {{{addresses}}}}}\n" + ROUTER,
              outputs=f", control: {operator.socket}")
    for version, (source, prefix) in enumerate((("10.77.0.1", "10.77.0.0/16"), ("fd77::1", "fd77::/16"))):
        other = HOSTS["lb"][version]
        wait_for(net, other, "although its route leads back")
        sh(f"ip -n la addr add {source}/{(32, 128)[version]} dev lo")

        def comes_back():
            return " 0% packet loss" in net.host("la", f"ping -q -c 1 -W 0.3 -I {source} {other}", check=False)

        check(not comes_back(), "no route leads back")
        gateway_routes(net, f"route add {prefix} via {HOSTS['la'][version]}")
        wait_until(comes_back, "no answer after a route was added", 10)
        write_rules(f"udp dport {1 + version} drop")
        check(operator.do("reload")["outcome"] == "in_use")
        check(comes_back(), "no answer after a reload")
        # The route to the other host stays, so what la sends would come there.
        gateway_routes(net, f"route replace {prefix} via {HOSTS['lc'][version]}")
        wait_until(lambda: not arrives_from(net, source, other), "what comes by another port is forwarded", 10)
        gateway_routes(net, f"route replace {prefix} via {HOSTS['la'][version]}")
        wait_until(comes_back, "no answer after the route was restored", 10)
    report = net.stop()
    check(report["functions"][0]["dropped"]["reasons"]["denied"] > 0, report["functions"][0])


def arrives_from(net, source, address):
    before = net.received("lb")
    net.host("la", f"ping -q -c 20 -i 0.01 -W 0.3 -I {source} {address}", check=False)
    return net.received("lb") >= before + 20


SCENARIOS = {
    "KernelRoutes": follows_changes,
    "KernelLinks": links_and_objects,
    "KernelNeighbours": neighbours_change,
    "KernelReloads": reloads,
    "KernelRoutesInRules": rules_ask_for_routes,
    "KernelErrors": icmp_errors,
    "KernelWarnings": warnings,
    "KernelRoutesXdp": lambda make: follows_changes(make, **SHARED),
    "KernelErrorsXdp": lambda make: icmp_errors(make, **SHARED),
}
