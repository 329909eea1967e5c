import classbench

classbench.make(__file__, version=4, rule_count=120, packet_count=400, matched="firewall.denied", policy=None)
