# SPDX-FileCopyrightText: 2026 The Penstock Authors
# SPDX-License-Identifier: Apache-2.0
"""Chains of network functions between the hosts."""

import json
import os

from net import Background, check, sh, spoilt, wait_until
from streams import download

# Both directions go into a tunnel and come out of it again, in the same chain.
STATE = """src 10.1.0.254 dst 10.2.0.254
	proto esp spi 0x00001001 reqid 1 mode tunnel
	replay-window 32 flag af-unspec
	aead rfc4106(gcm(aes)) 0x0102030405060708090a0b0c0d0e0f1011121314 128
	anti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
	sel src 0.0.0.0/0 dst 0.0.0.0/0
"""
POLICY = """src 10.1.0.0/24 dst 10.2.0.0/24
	dir out priority 1 ptype main
	tmpl src 10.1.0.254 dst 10.2.0.254
		proto esp reqid 1 mode tunnel
"""
MARK = "penstock crosses segments"


def firewall(net):
    net.write("rules", "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
                       "-A FORWARD -p tcp -m tcp --dport 9 -j DROP\n"
                       "-A FORWARD -p udp -m udp --dport 7 -j DROP\nCOMMIT\n")
    return "  - firewall: {rules: rules, policy: accept}\n"


def nids(net, action="alert"):
    net.write("nids.rules", f'alert tcp any any -> any any (msg:"mark"; content:"{MARK}"; sid:1; rev:1;)\n')
    return f"  - nids: {{rules: nids.rules, action: {action}}}\n"


def exchange(net, bytes_="15M"):
    for version in (4, 6):
        out = net.ping(version=version)
        check(" 0% packet loss" in out, out)
        net.iperf("", version, bytes_)
        net.iperf("-R", version, bytes_)


def chain_of(make, functions, **shape):
    net = make(routed=True, **shape)
    net.start("".join(function(net) for function in functions))
    exchange(net)
    report = net.stop()
    check(spoilt(report, "lan") == 0 and spoilt(report, "wan") == 0, report["ports"])
    return report


def router(net):
    return net.router()


def ipsec(net):
    net.write("state", STATE)
    net.write("policy", POLICY)
    return ("  - ipsec: {state: state, policy: policy, state_dir: none}\n"
            "  - ipsec: {state: state, direction: in, state_dir: none}\n")


def everything(make):
    # Room for the tunnel's headers: TCP sends less than the MTU.
    report = chain_of(make, [firewall, nids, ipsec, router])
    for function in report["functions"][2:4]:
        sas = function["details"]["sas"]
        check(len(sas) == 1 and sas[0]["packets"] > 1000, function["name"], sas)


def detects(make, workers):
    """The same alerts and drops, whether the hosts' stacks or Penstock split the data into segments."""
    results = []
    for on in (True, False):
        net = make(workers=workers)
        net.offloads(on)
        eve = net.path(f"eve-{on}.json")
        net.start(firewall(net) + nids(net), outputs=f", eve: {eve}")
        folder = net.path(f"www-{on}")
        os.mkdir(folder)
        # The mark at each place of a segment, and so across segments of any size.
        text = "".join("." * (1400 + i) + MARK for i in range(1500))
        with open(folder + "/file", "w") as file:
            file.write(text)
        net.serve("lb", f"python3 -m http.server -d {folder} --bind :: 8000", 8000)
        got = net.host("la", f"curl -sS http://{net.address('lb')}:8000/file | wc -c")
        check(int(got) == len(text), got)
        blocked = net.host("la", f"curl -sS --connect-timeout 0.5 http://{net.address('lb')}:9/ 2>&1", check=False)
        check("timed out" in blocked.lower() or "timeout" in blocked.lower(), blocked)
        report = net.stop()
        check(spoilt(report, "lan") == 0 and spoilt(report, "wan") == 0, report["ports"])
        split = report["ports"]["wan"]["events"].get("frames_split", 0)
        check((split > 0) == (on and net.kind.splits), "frames split with offloads", on, split)
        with open(eve) as file:
            alerts = [json.loads(line) for line in file]
        results.append({(alert["src_ip"], alert["alert"]["signature"]) for alert in alerts if alert["event_type"] == "alert"})
        dropped = report["functions"][0]["dropped"]
        check(dropped["packets"] >= 1, dropped)
        net.remove()
    check(results[0] == results[1] and results[0], results)


def tenant(make, workers):
    """A proxy, with a simulated device, gets frames where the port has put them, if the port can share them."""
    net = make(workers=workers)
    net.processor = "gpu"
    socket = net.path("proxy.sock")
    proxy = Background(net.gateway, f"{os.environ['PENSTOCK_PROXY_PROGRAM']} simulate {socket}", net.path("proxy.log"))
    net.background.append(proxy)
    wait_until(lambda: os.path.exists(socket), "the proxy does not listen: " + proxy.text())
    net.start(run=f", proxy: {socket}")
    exchange(net)
    report = net.stop()
    check(spoilt(report, "lan") == 0 and spoilt(report, "wan") == 0, report["ports"])
    check(report["packets"]["dropped"] == 0, report["packets"])
    check(report["gpu"]["segments"] > 0 and report["gpu"]["failures"] == 0, report["gpu"])
    for port in ("lan", "wan"):
        lent = report["ports"][port]["events"]["frames_lent"]
        check((lent > 1000) == (net.kind.kind == "af_xdp"), "frames lent", lent)


BRIDGE = """
table bridge filter {
 chain forward {
  type filter hook forward priority filter; policy drop;
  %s
  ip protocol icmp accept
  icmpv6 type { echo-request, echo-reply } accept
  oifname "wan" tcp dport 8000 accept
  oifname "lan" tcp sport 8000 accept
 }
 chain prerouting {
  type filter hook prerouting priority filter;
  tcp dport 8001 drop
 }
}
"""
WHO_HAS = "arp operation { request, reply } accept; icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept;"


def transparent(make):
    """Rules of family bridge between two hosts that have to ask for each other's addresses first."""
    net = make()

    def start(who_has):
        rules = net.write("bridge.nft", BRIDGE % who_has)
        net.start("".join(f"  - firewall: {{rules: {rules}, family: bridge, hook: {hook}}}\n" for hook in ("prerouting", "forward")))
        for host in ("la", "lb"):
            sh(f"ip -n {host} neigh flush nud all; ip -n {host} -6 neigh flush nud all", check=False)

    start(WHO_HAS)
    net.serve("lb", "python3 -m http.server --bind :: 8000", 8000)
    net.serve("lb", "python3 -m http.server --bind :: 8002", 8002)
    for version in (4, 6):
        check(" 0% packet loss" in net.ping(version=version, options="-c 2 -i 0.2 -W 2"), "IPv", version)
        at = net.address("lb", version) if version == 4 else f"[{net.address('lb', 6)}]"

        def get(port):
            return net.host("la", f"curl -sS -o /dev/null -w '%{{http_code}}' --connect-timeout 0.7 http://{at}:{port}/ 2>&1", check=False)

        check(get(8000).startswith("200"), "IPv", version, get(8000))
        for port in (8001, 8002):
            check("timed out" in get(port).lower() or "timeout" in get(port).lower(), "IPv", version, get(port))
    report = net.stop()
    for function in report["functions"]:
        check(function["dropped"]["reasons"]["denied"] > 0, function["dropped"])
    start("")
    for version in (4, 6):
        out = net.host("la", f"ping -q -c 1 -W 0.5 {net.address('lb', version)}", check=False)
        check("100% packet loss" in out, "without ARP, IPv", version, out)
    report = net.stop()
    check(report["functions"][1]["details"]["policy"]["bridge"]["packets"] > 0, report["functions"][1])


SCENARIOS = {
    "TransparentFirewall": transparent,
    "FilterAlone": lambda make: download(make, 1, "  - filter: {expression: ip or ip6, match: forward}\n"),
    "Router": lambda make: chain_of(make, [router]),
    "FirewallRouter2": lambda make: chain_of(make, [firewall, router], workers=2),
    "Everything": everything,
    "Detects1": lambda make: detects(make, 1),
    "Detects2": lambda make: detects(make, 2),
    "Tenant1": lambda make: tenant(make, 1),
    "Tenant2": lambda make: tenant(make, 2),
}
