#!/usr/bin/env python3
"""Compares two results of `octet evaluate --json` of one network, run by Octet and by another program.

    same_figures.py OWN.json OTHER.json
Rounding may turn a few images near a border: at most 1 % of them, and 1 % of the loss.
"""
import json
import sys


def main():
    own, other = (json.load(open(path)) for path in sys.argv[1:])
    metric = own["metric"]
    print(f"{other['ran_as']}: {metric} {other[metric]:.2f}, by Octet {own[metric]:.2f}; loss {other['loss']:.5f}, {own['loss']:.5f}")
    same = own["images"] == other["images"] > 0 and own["ran_as"] != other["ran_as"]
    same &= abs(own[metric] - other[metric]) <= 1 and abs(own["loss"] - other["loss"]) <= 0.01 * own["loss"]
    sys.exit(not same)


if __name__ == "__main__":
    main()
