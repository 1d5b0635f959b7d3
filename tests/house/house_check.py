"""The test `house`: prints every breach of the house's rules and fails if there is one.

  house_check.py ROOT [--compiler CXX --cache FILE] [-- FLAG...]

With a compiler each header is compiled alone as well; the flags say where the headers of other libraries are.
"""

import argparse
import sys

from headers_alone import headers_compile_alone
from house_rules import RULES, Tree


def main():
    ours, flags = sys.argv[1:], []
    if "--" in ours:
        flags = [flag for flag in ours[ours.index("--") + 1:] if flag]
        ours = ours[:ours.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--compiler")
    parser.add_argument("--cache")
    args = parser.parse_args(ours)
    tree = Tree(args.root)
    complaints = [complaint for rule in RULES for complaint in rule(tree)]
    if args.compiler:
        complaints += headers_compile_alone(tree, args.compiler, flags, args.cache)
    print("\n".join(complaints))
    print(f"{len(tree.texts)} files, {len(complaints)} breaches")
    return 1 if complaints or not tree.texts else 0


if __name__ == "__main__":
    sys.exit(main())
