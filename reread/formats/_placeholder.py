"""Promises instead of content: words that stand where something should be.

Words come last. They fail a file only where little else is in it; beside real substance they are a
warning. Fenced code, code spans and quoted words are left out, since texts about placeholders are
no placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reread.formats._checks import Item, hollow, invalid, passed, warned
from reread.patterns import compiled_later

FILLER = compiled_later(
    r"""
    \b(?:TODO|TBD|TBA|FIXME|XXX)\b
    | lorem\ ipsum | dolor\ sit\ amet
    | \b(?:to\ be|will\ be|gets?)\ (?:converted|filled(?:\ in)?|added|written|completed|generated|
        inserted|determined|replaced|provided)(?:\ (?:later|soon|here|shortly))?\b
    | \b(?:content|text|chart|table|image|data|details?|results?|section|summary|report|document|
        slides?|figures?)\ (?:goes|go|comes?|follows?|here|pending|coming\ soon)\b
    | \b(?:insert|add|your|enter|put)\ [\w\ ]{0,24}\b(?:here|text|title|content|name)\b
    | \b(?:placeholder|coming\ soon|under\ construction|not\ yet\ (?:available|written|implemented))\b
    | click\ to\ (?:add|edit)\ (?:text|title|subtitle)
    | \[(?:to\ be|insert|add|your|fill|placeholder|tbd|todo)[^\]]{0,60}\] | <(?:insert|your|fill)[^>]{0,40}>
    | 待(?:补充|填写|完善|续|定|转换|生成|更新|添加) | 占位(?:符|文本|内容)? | (?:此处|这里)(?:填写|插入|添加|放置|是内容)
    | (?:内容|正文|图表|数据)(?:待|即将|稍后) | 敬请期待 | 稍后(?:补充|填写|更新|生成) | 将(?:在稍后|被)(?:转换|填充|生成|补充)
    """,
    re.IGNORECASE | re.VERBOSE,
)
HOLLOW = compiled_later(
    r"""
    \{\{[^{}\n]{1,60}\}\} | ^[ \t]*(?:\{\w+\}|%\w+%|<[\w ]+>)[ \t]*$
    | ^\W*(?:undefined|null|none|nan|object\ Object)\W*$
    | ^Traceback\ \(most\ recent\ call\ last\)[\s\S]*
    | \b(?:sample|dummy|example|filler)\ (?:text|content|data)\b | \bthis\ is\ a\ (?:stub|mock-?up|draft)\b
    | \bto\ be\ (?:continued|announced|defined|done)\b | \b(?:work\ in\ progress|WIP)\b
    | \bsorry,?\ (?:but\ )?I\ (?:can['’]?t|can\s?not|am\ unable)[^\n]{0,80} | \bas\ an\ AI\b[^\n]{0,80}
    | \bI(?:['’]ve|\ have)\ (?:now\ )?(?:created|saved|written|generated|prepared)\b[^\n]{0,80}
    | \bhere(?:['’]s|\ is|\ are)\ (?:the|your)\ [\w ]{1,30}\b(?:you\ (?:asked|requested|wanted)|below)[^\n]{0,40}
    | \b(?:report|file|document|data|results?|output)\ (?:(?:has|have)\ been\ |was\ |were\ |is\ )?
        (?:successfully\ )?(?:saved|written|created|generated)\b(?:\ successfully)?(?:\ (?:to|in|as)\ \S+)?
    | 省略 | [（(【\[]?略[）)】\]] | (?:内容|正文|报告|数据|图表)(?:正在)?(?:生成|加载|撰写)中 | 示例(?:内容|文本|数据)
    | (?:内容|正文)将[^\n。]{0,12} | 请在?(?:此|这里)[^\n。]{0,12} | 暂无(?:内容|数据|正文) | (?:详)?见附件
    | (?:生成|加载|读取)失败 | (?:文件|报告|文档|结果|数据)(?:已|成功)[^\n。]{0,4}(?:保存|生成|创建|写入|导出)[^\n。]{0,20}
    | (?:抱歉|对不起)[，,\s]?我(?:无法|不能)[^\n]{0,40} | 作为(?:一个|一名)?(?:AI|人工智能)[^\n]{0,40} | 未完待续 | 待续
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""What real texts say too, and what is no content where a file says little else: variables that
nobody filled in, words about the file, a refusal, an error."""
DATA = compiled_later(r"\s*(?:data:[\w/+.;=-]{3,80},)?[A-Za-z0-9+/\r\n]{200,}={0,2}\s*")
"""Encoded bytes and nothing else."""
ELIDED = compiled_later(
    r"""^[ \t]*(?:
      \[?\.{3}\s*(?:\(?\d+\s+(?:more|other)|rest|remaining|truncated|omitted|existing|unchanged)[^\n]{0,80}
      | \[(?:trimmed|truncated|omitted|output\ truncated)\b[^\]\n]{0,80}\]
      | (?:\#|//|<!--|/\*)\s*\.{3}\s*(?:rest|existing|remaining|other|more|same|unchanged)[^\n]{0,80}
      | [（(]?(?:以下|其余|后续)(?:内容|部分)?(?:省略|略|不变)[）)]?
    )[ \t\r]*$""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
TOOL_TAGS = compiled_later(
    r"</?(?:content|invoke|parameter|function_calls?|tool_call|tool_use|file_content|antml:\w+)\b[^>]*>\s*\Z"
)
FENCE = compiled_later(r" {0,3}(`{3,}|~{3,})(.*)")
TAIL = 400
"""Characters at the end in which a tag of the call is looked for."""
QUOTED = compiled_later(
    r"`[^`\n]*`|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|「[^」\n]{1,80}」|《[^》\n]{1,80}》"
)
_IDEOGRAPH = r"\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af"
WORD = compiled_later(rf"[{_IDEOGRAPH}]|[^\W\d_{_IDEOGRAPH}]{{2,}}")
IDEOGRAPH = compiled_later(f"[{_IDEOGRAPH}]")
_RUN = rf"[^\W_{_IDEOGRAPH}]+"
TOKEN = compiled_later(rf"[{_IDEOGRAPH}]|{_RUN}(?:[.,'\u2019-]{_RUN})*")
FEW_WORDS = 12
FILLER_SHARE = 0.34


def prose(text: str) -> str:
    """Return the text without fenced code, code spans and quoted words."""
    return QUOTED.sub(" ", unfenced(text))


def unfenced(text: str) -> str:
    """Return the text without code in closed fences."""
    lines: list[str] = []
    mark, start = "", 0
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        lines.append(line)
        if not found:
            continue
        if not mark:
            mark, start = found.group(1), len(lines) - 1
        elif found.group(1).startswith(mark) and not found.group(2).strip():
            del lines[start:]
            mark = ""
    return "".join(lines)


def words(text: str) -> int:
    """Count words; an ideograph counts as one."""
    return sum(1 for _ in WORD.finditer(text))


def word_count(text: str) -> int:
    """Count what a reader would count: words, numbers, and each ideograph."""
    return sum(1 for _ in TOKEN.finditer(text))


def judge(text: str, format: str, *, allow_empty: bool = False) -> Iterator[Item]:
    """Yield whether a text is content or a promise of it.

    Args:
        text: what a reader would see; `prose()` of it where it can hold code.
    """
    name = f"{format}.no_filler"
    hit = FILLER.search(text)
    if hit is None:
        yield _said(text, name, allow_empty=allow_empty)
        return
    lines = [line for line in text.splitlines() if line.strip()]
    bad = sum(1 for line in lines if FILLER.search(line))
    left = words(FILLER.sub(" ", text))
    shown = " ".join(hit.group().split())[:60]
    if not allow_empty and (left < FEW_WORDS or bad >= FILLER_SHARE * len(lines)):
        yield hollow(name, "filler_text", f"It promises content instead of holding it: '{shown}'.")
    else:
        yield warned(name, "substance", "filler_text", f"One place still promises: '{shown}'.")


def _said(text: str, name: str, *, allow_empty: bool) -> Item:
    """Say whether there is more in a text than words about a file that is not there."""
    hit = None if allow_empty else HOLLOW.search(text)
    left = HOLLOW.sub(" ", text)
    if hit is None or words(left) >= FEW_WORDS or len(IDEOGRAPH.findall(left)) >= FEW_WORDS:
        return passed(name, "substance")
    shown = " ".join(hit.group().split())[:60]
    return hollow(name, "stand_in", f"It says hardly more than '{shown}'.")


def fenced(text: str, format: str, *, languages: str = r"[\w+-]*") -> Iterator[Item]:
    """Yield the failure of a file that is wrapped as a whole in the code fence of a chat answer."""
    stripped = text.strip("\ufeff \t\r\n")
    if not stripped.startswith(("```", "~~~")):
        return
    mark = stripped[:3]
    first, _, rest = stripped.partition("\n")
    ends = re.search(rf"^{mark}\s*$", rest, re.MULTILINE)
    whole = ends is None or not rest[ends.end() :].strip()
    if whole and re.fullmatch(rf"[`~]+\s*(?:{languages})\s*", first, re.IGNORECASE):
        cause = f"All of it stands in a code fence that starts with '{first.strip()[:40]}'."
        yield invalid(f"{format}.no_wrapper", "in_a_fence", cause, depth="identity")


def leaks(text: str, format: str) -> Iterator[Item]:
    """Yield failures of text that was cut or wrapped on its way to the file."""
    if DATA.fullmatch(text) and " " not in text.strip() and not text.strip().isalpha():
        cause = "It is encoded bytes (base64) and not a text."
        yield invalid(f"{format}.no_wrapper", "base64_text", cause, depth="identity")
    plain = unfenced(text)
    elided = ELIDED.search(plain)
    if elided:
        yield hollow(
            f"{format}.whole",
            "elided",
            f"A part was left out where it says '{elided.group().strip()[:60]}'.",
        )
    tag = TOOL_TAGS.search(text[-TAIL:])
    if tag and not _opened(text, tag.group()):
        yield invalid(
            f"{format}.no_wrapper",
            "tool_tags",
            f"It ends with '{tag.group().strip()[:60]}', a tag of the call that wrote it.",
        )


def _opened(text: str, tag: str) -> bool:
    """Say whether a closing tag at the end was opened in the text, as in a real document."""
    found = re.match(r"</([\w:]+)", tag)
    return found is not None and re.search(rf"<{re.escape(found.group(1))}[\s>]", text) is not None
