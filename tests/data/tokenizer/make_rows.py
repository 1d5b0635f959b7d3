"""Makes the files beside it: a small byte-level BPE vocabulary, and what the PyPI package `tokenizers` makes of many texts.

    pip install tokenizers==0.23.3 && python make_rows.py

vocabulary.json   pieces, kinds (tokenizer.ggml.token_type) and merges
<pre>.jsonl       rows {"text", "parse": control tokens are matched, "ids"} for the pre-tokenizer of that GGUF name

The pre-tokenizers are the published ones: GPT-2's is ByteLevel's own, Llama 3's and Qwen2's are their Split expressions
before ByteLevel(use_regex=False). Qwen2's NFC normalization is left out: a GGUF file does not carry it. No character here
is younger than Unicode 14.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CONTROL = ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>", "<|im_end|>\n", "<|im"]
USER_DEFINED = ["<tool_call>", "</tool_call>"]
UNREACHABLE = [" strawberry", "unhappily", "zebra crossing", "\n\n\n\n\n\n\n", " naïveté", "xylophone", "日本語"]

PARAGRAPHS = """
The quick brown fox jumps over the lazy dog. It's not that we don't know, they've said; I'm sure you'll see what we're doing.
When the rain stopped, the children ran down to the river and counted boats: one, two, three hundred and forty-five.
An engine that serves many conversations at once must keep each of them apart, and yet compute them together.
Please write a short letter to the office in which you ask for the results of the last examination, and thank them.
She'd have thought twice about it if he hadn't told her that the others weren't coming before the end of the month.
In 1905, 1914 and 2024 the figures were 1234567, 98.6 %, 3.14159, 0x1F, 1e-9 and $12,345.67; call +49 30 1234-5678.
Der Fluß fließt schneller, als man denkt, und die Straße über die Brücke ist seit gestern wieder für Fußgänger geöffnet.
L'été dernier, nous avons mangé des crêpes près de la forêt; c'était déjà l'anniversaire de François, n'est-ce pas ?
El niño pequeño comió una manzana en la montaña. ¿Dónde está la biblioteca? ¡Qué día más bonito para pasear!
Быстрая коричневая лиса перепрыгивает через ленивую собаку, а потом засыпает под большим деревом у реки.
Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί και ύστερα κοιμάται κάτω από το δέντρο.
素早い茶色の狐がのろまな犬を飛び越える。日本語の文章には空白がありません。カタカナとひらがなと漢字があります。
敏捷的棕色狐狸跳过了懒狗。我们今天去学校学习中文，明天去北京看长城，后天回家。
빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 오늘은 날씨가 좋아서 강가를 걸었습니다.
الثعلب البني السريع يقفز فوق الكلب الكسول، ثم ينام تحت الشجرة الكبيرة قرب النهر.
השועל החום המהיר קופץ מעל הכלב העצלן והולך לישון מתחת לעץ הגדול.
तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है और नदी के किनारे पेड़ के नीचे सो जाती है।
สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ แล้วนอนหลับใต้ต้นไม้ใหญ่
Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng rồi ngủ dưới gốc cây lớn bên bờ sông.
Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Árvíztűrő tükörfúrógép.
Great 👍 work 🎉🎉 team 👩‍👩‍👧‍👦 from 🇩🇪 to 🇯🇵, see you 😀😀😀 soon ❤️!
""".strip().split("\n")

CODE = [
    "def add(a, b):\n    \"\"\"Adds.\"\"\"\n    return a + b\n\n\nclass Point:\n    def __init__(self, x=0, y=0):\n        self.x = x\n        self.y = y\n",
    "for (int i = 0; i < 10; ++i) {\n\tif (values[i] != nullptr && values[i]->size() >= 100) {\n\t\tsum += *values[i];  // why\n\t}\n}\n",
    "#include <vector>\n\nnamespace app {\n\ntemplate <class T>\nstd::vector<T> make(std::size_t n) { return std::vector<T>(n); }\n\n}  // namespace app\n",
    "SELECT name, COUNT(*) AS n FROM users WHERE age >= 18 AND name LIKE 'A%' GROUP BY name ORDER BY n DESC;\n",
    "{\"name\": \"x\", \"values\": [1, 2, 3.5, -7e10], \"nested\": {\"ok\": true, \"none\": null}}\n",
    "<html>\r\n  <body class=\"a b\">\r\n    <p>Hello &amp; good bye</p>\r\n  </body>\r\n</html>\r\n",
    "$ ls -la /usr/lib | grep -v '^d' >> out.txt 2>&1 && echo \"done\"\n",
    "| a | b |\n| --- | --- |\n| 1 | 22 |\n\n- item\n  - inner item\n\n***bold*** `code` [link](http://example.org/a?b=c&d=e#f)\n",
]

SPECIMENS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "a\n\nb", "a\n\n\n", "a \n\n b", "\r\n", "a\r\n\r\nb", " \n \n x", "\t\t\tx", "x\t",
    " " * 7 + "x", " " * 64, " " * 300 + "end", "1", "12", "123", "1234", "12345", "1234567", "1 2", "1  2", " 12", "  12",
    "3.14", "don't", "DON'T", "don'T", "I'LL we'Ve 'Re 'd 'M", "'s", "'S", "''s", "'sx", "x'sx", "'ll'll", "'\u017f", "'l\u017f", "it\u2019s",
    "naïve", "nai\u0308ve", "e\u0301te\u0301", "\u00bd", " \u00bd", "x\u00b2", "\u2167 \u2168", "\u0661\u0662\u0663\u0664", "\u096c\u096d", "\uff11\uff12", "\U0001d7d8\U0001d7d9\U0001d7da\U0001d7db",
    "\u00a0", "a\u00a0b", "a \u00a0 b", "\u1680x", "\u180ex", "\u180e!", " \u180e x", "\u2003x", "\u2028\u2029x", "\u3000\u3000x", "\u200bx", "\ufeffx", "\x85x", "\x0b\x0cx", "\x1c\x1dx", "\x00\x01\x7f",
    "...", " ...", "...\n", "...\n\n", "!!!\r\n\r\nx", "?!\n x", "a.b", "a . b", "_x_", "__init__", "C++", "x=>y", "#!/bin/sh", "a/b\\c", "\"quoted\"", "(x)", "[x]\n", "{x}",
    "👍", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪🇯🇵", "😀" * 20, "a😀b", "❤️", "\U000e0067", "\U0010fffd", "\ue000", "\ufffd",
    "日本語", "日本語の", "x日本語", " 日本語", "unhappily", "un happily", " strawberry", "strawberry", " strawberry jam", "a strawberry", " naïveté", "xylophone", "xylophones", "zebra crossing",
    "\n" * 7, "\n" * 8, "a" * 500, "ab" * 300, "=" * 100, "-" * 77, "\u4e2d" * 90, "0" * 100,
]
CONTROL_TEXTS = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>", "<|im_end|>\n", "<|im_end|> \n", "<|im", "<|im|>", "<|im_start|", "<<|im_start|>>",
    "<|begin_of_text|><|begin_of_text|>x<|end_of_text|>", " <|im_end|> ", "a<|im_end|>b", "don<|im_end|>'t", "12<|im_end|>34", "  <|im_end|>  x",
    "<|IM_END|>", "<|im_end|>\n\n\n<|im_end|>", "x <|end_of_text|>\n\n",
]
ALPHABET = (list("abcdeESTLMRVt") + list("0123456789") + ["'", "'", "\u2019", "\u017f"] + [" "] * 8 + list("\n\r\t\n\n\x0b\x0c") +
            ["\u00a0", "\u3000", "\u2028", "\u180e", "\u0085", "\u200b"] + list(".,!?-_=<>/\\|\"()[]{}#$%&*+@^~`:;") +
            list("éßñжλ中日本カ한अ\u094d\u0301\u0308ต้") + ["½", "²", "Ⅷ", "٣", "६", "😀", "🇩", "👍🏽", "\u200d", "\ufe0f", "\x00", "\x1b"])


def byte_level(text):
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in alphabet.pre_tokenize_str(text))


def split(words):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), "isolated", invert=False),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


PRE_TOKENIZERS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    "llama-bpe": split(WORDS % r"\p{N}{1,3}"),
    "qwen2": split(WORDS % r"\p{N}"),
}


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = PRE_TOKENIZERS["llama-bpe"]
    trainer = trainers.BpeTrainer(vocab_size=2800, min_frequency=1, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    runs = ["=" * 64, "-" * 32, " " * 32 + "x", "\n\n\n\n", "\n \n \n", "aaaa", "ababab", "    x\n        y\n\t\tz"]
    tokenizer.train_from_iterator(PARAGRAPHS * 2 + CODE * 3 + runs, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    merges = [" ".join(merge) for merge in model["merges"]]
    kinds = [1] * len(pieces)
    for text in UNREACHABLE:
        pieces.append(byte_level(text))
        kinds.append(1)
    pieces += CONTROL + USER_DEFINED
    kinds += [3] * len(CONTROL) + [4] * len(USER_DEFINED)
    assert len(set(pieces)) == len(pieces)
    return pieces, kinds, merges


def texts():
    rng = random.Random(20240726)
    rows = list(SPECIMENS)
    for paragraph in PARAGRAPHS:
        rows.append(paragraph)
        at = rng.randrange(len(paragraph) // 2)
        rows.append(paragraph[at:at + rng.randrange(5, 60)])
    rows += CODE
    for _ in range(150):
        rows.append("".join(rng.choice(ALPHABET) for _ in range(rng.randrange(2, 40))))
    return rows


def main():
    pieces, kinds, merges = train()
    HERE.joinpath("vocabulary.json").write_text(
        json.dumps({"pieces": pieces, "kinds": kinds, "merges": merges}, separators=(",", ":")) + "\n")
    base = {piece: i for i, piece in enumerate(pieces) if kinds[i] == 1}
    for name, pre in PRE_TOKENIZERS.items():
        model = models.BPE(vocab=base, merges=[tuple(m.split(" ")) for m in merges], ignore_merges=name == "llama-bpe")
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre
        tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in CONTROL])
        tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in USER_DEFINED])
        assert all(tokenizer.token_to_id(piece) == i for i, piece in enumerate(pieces))
        rows = [(text, False) for text in texts()]
        rows += [(text, parse) for text in CONTROL_TEXTS for parse in (False, True)]
        # `tokenizers` matches these always; this project where control tokens are.
        rows += [("<tool_call>{\"a\": 1}</tool_call>", True), ("x <tool_call>", True)]
        with HERE.joinpath(name + ".jsonl").open("w") as out:
            for text, parse in rows:
                tokenizer.encode_special_tokens = not parse
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                out.write(json.dumps({"text": text, "parse": parse, "ids": ids}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
