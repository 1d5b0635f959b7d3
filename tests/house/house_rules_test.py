"""Plants a breach of every rule of the house in a copy of the project, and sees the rule complain about that file.

  house_rules_test.py ROOT COMPILER
"""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import house_rules
from headers_alone import headers_compile_alone
from house_rules import RULES, Tree

ROOT, COMPILER = sys.argv[1], sys.argv[2]
PLAIN = "#pragma once\nnamespace troupe {}\n"


class PlantedBreach(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        for name in Tree(ROOT).texts:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(ROOT) / name, self.root / name)

    def plant(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def complaints(self, rule, name):
        return [line for line in rule(Tree(self.root)) if line.startswith(f"{name}:")]

    def expect_breach(self, rule, name, text, words):
        self.assertEqual(self.complaints(rule, name), [], "complains before anything is planted")
        self.plant(name, text)
        found = self.complaints(rule, name)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def expect_peace(self, rule, name, text):
        self.plant(name, text)
        self.assertEqual(self.complaints(rule, name), [])

    def test_an_include_that_climbs(self):
        rule = house_rules.includes_never_climb
        self.plant("actors/planted_high.h", PLAIN)
        self.expect_breach(rule, "kernels/planted.h", '#include "runtime/engine.h"\n', "higher floor")
        self.expect_breach(rule, "runtime/kv/planted.h", '#include "actors/planted_high.h"\n', "higher floor")
        self.expect_breach(rule, "actors/planted.h", '#  include "apps/troupe/options.h"\n', "higher floor")
        self.expect_peace(rule, "actors/planted.h", '#include "kernels/result.h"\n#include "actors/planted_high.h"\n')

    def test_an_include_of_tests_outside_tests(self):
        rule = house_rules.includes_never_climb
        self.expect_breach(rule, "apps/planted.cpp", '#include "tests/support/test_scale.h"\n', "only tests")
        self.expect_peace(rule, "tests/runtime/planted.cpp", '#include "tests/support/test_scale.h"\n')

    def test_an_include_that_is_not_whole(self):
        rule = house_rules.includes_are_whole
        self.expect_breach(rule, "runtime/kv/planted.h", '#include "page_pool.h"\n', "from the root")
        self.expect_breach(rule, "runtime/kv/planted2.h", '#include "../batch.h"\n', "from the root")
        self.expect_breach(rule, "runtime/kv/planted3.h", '#include "runtime/kv/../batch.h"\n', "from the root")
        self.expect_breach(rule, "runtime/kv/planted4.h", '#include "runtime/nowhere.h"\n', "does not exist")
        self.expect_breach(rule, "runtime/kv/planted5.h", "#include <kernels/result.h>\n", "in quotes")

    def test_caf_below_actors(self):
        rule = house_rules.caf_stays_above
        self.expect_breach(rule, "runtime/planted.cpp", "#include <caf/all.hpp>\n", "below actors/")
        self.expect_breach(rule, "kernels/planted.cpp", "namespace caf { class actor; }\n", "below actors/")
        self.expect_breach(rule, "runtime/planted2.cpp", "CAF_BEGIN_TYPE_ID_BLOCK(troupe, 1)\n", "below actors/")
        self.expect_breach(rule, "runtime/planted/CMakeLists.txt", "target_link_libraries(x CAF::core)\n", "below actors/")
        self.expect_peace(rule, "runtime/planted3.cpp", '// no CAF:: here\nconst char* kWord = "caf";\n')
        self.expect_peace(rule, "actors/planted.cpp", "#include <caf/all.hpp>\n")

    def test_a_cuda_header_outside_its_folder(self):
        rule = house_rules.cuda_stays_in_its_folder
        self.expect_breach(rule, "kernels/planted.cpp", "#include <cuda_runtime.h>\n", "kernels/cuda/")
        self.expect_breach(rule, "runtime/planted.cpp", "#include <cublas_v2.h>\n", "kernels/cuda/")
        self.expect_peace(rule, "kernels/cuda/planted.cu", "#include <cuda_runtime.h>\n")

    def test_a_wide_header(self):
        rule = house_rules.headers_stay_narrow
        for library in ("nlohmann/json.hpp", "spdlog/spdlog.h", "boost/asio.hpp", "pcre2.h", "fmt/format.h"):
            self.expect_breach(rule, f"runtime/planted_{len(library)}.h", f"#include <{library}>\n", library)
        self.expect_peace(rule, "runtime/planted.cpp", "#include <nlohmann/json.hpp>\n")

    def test_a_public_header_that_reaches_caf(self):
        rule = house_rules.headers_stay_narrow
        self.plant("actors/troupe.h", '#pragma once\n#include "actors/planted_between.h"\n')
        self.expect_breach(rule, "actors/planted_between.h", "#include <caf/actor.hpp>\n", "applications reach")
        self.expect_peace(rule, "actors/planted_elsewhere.h", "#include <caf/actor.hpp>\n")

    def test_a_long_file(self):
        rule = house_rules.files_are_short
        self.expect_peace(rule, "apps/planted.cpp", "\n" * 400)
        self.expect_breach(rule, "apps/planted_long.cpp", "\n" * 401, "401 lines")
        self.expect_breach(rule, "cmake/front_door/planted.sh", "\n" * 401, "401 lines")

    def test_a_circle_of_includes(self):
        rule = house_rules.includes_form_no_circle
        self.plant("runtime/planted_a.h", '#include "runtime/planted_b.h"\n')
        self.plant("runtime/planted_b.h", '#include "runtime/planted_c.h"\n')
        self.expect_breach(rule, "runtime/planted_c.h", '#include "runtime/planted_a.h"\n', "circle")
        self.expect_breach(rule, "kernels/planted_self.h", '#include "kernels/planted_self.h"\n', "circle")

    def test_a_name_that_says_nothing(self):
        rule = house_rules.names_say_something
        self.expect_breach(rule, "runtime/string_util.cpp", "\n", "says nothing")
        self.expect_breach(rule, "kernels/helpers/planted.h", PLAIN, "says nothing")
        self.expect_breach(rule, "actors/session_manager.h", PLAIN, "says nothing")
        self.expect_peace(rule, "runtime/utility_bill.h", PLAIN)

    def test_a_header_that_does_not_compile_alone(self):
        cases = {
            "kernels/planted_needy.h": ("#pragma once\ninline std::string needy() { return {}; }\n", True),
            "kernels/planted_unguarded.h": ("inline int unguarded() { return 1; }\n", True),
            "kernels/planted_whole.h": ("#pragma once\n#include <string>\ninline std::string whole() { return {}; }\n", False),
        }
        for name, (text, _) in cases.items():
            self.plant(name, text)
        cache = str(self.root / "cache")
        for _ in ("compiled", "remembered"):
            found = list(headers_compile_alone(Tree(self.root), COMPILER, [], cache, set(cases)))
            self.assertEqual({line.split(":")[0] for line in found}, {name for name, (_, bad) in cases.items() if bad})

    def test_every_rule_has_a_test_here(self):
        text = Path(__file__).read_text(encoding="utf-8")
        for rule in RULES:
            self.assertIn(f"house_rules.{rule.__name__}", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
