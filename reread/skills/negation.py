"""Whether a stretch of a task is wanted, or the task says that it is not.

A cue counts only inside its clause, and not where it is a part of another word or of a phrase that
means the contrary (识别, 要不要, "not only", "don't forget"). The lists hold words of the
two languages, not of any task.
"""

from __future__ import annotations

import re
from functools import lru_cache

from reread.patterns import compiled_later

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2018": "'"})

# Where the reach of a cue ends. A comma does, too, but lists go on over it.
_STOPS = r"[.!?;:。！？；：\n()（）\[\]【】]|\s[-\u2013\u2014]+\s|[\u2013\u2014]{1,2}|,|，"
_CLAUSE_END = compiled_later(rf"(?:{_STOPS})(?<!\d[.,:])|(?:{_STOPS})(?!\d)")
_TURN = compiled_later(
    r"\b(?:but|however|yet|although|though|instead(?! of)|rather(?! than)|then|just|only)\b"
    r"|\band (?!(?:a|an|the|any|some|other|more|no|its?|their|your|my|our|\w+ing)\b)[\w'-]+ "
    r"|而是|但|却|只(?!是)|而要|改为|改成|转而|反而|不如|然后"
)

_MEANT = (  # "not only", "don't forget": what follows is wanted all the same
    r"forget|hesitate|miss|omit|skip|neglect|leave out|fail|avoid|stop|exclude|ignore"
    r"|only|just|merely|simply|solely"
)
_STATED = r"know|understand|see|get|have(?! to)|remember|recall|find|like(?! to)|mind|care|trust"
_ENGLISH = compiled_later(
    r"\b(?:"
    rf"(?<!why )(?:do not|don'?t|must not|mustn'?t|should not|shouldn'?t|need not|needn'?t)"
    rf"(?! (?:{_MEANT}|{_STATED})\b)"
    r"|(?:does not|doesn'?t) (?:need|require|want|include)"
    r"|(?:i|we|you|they) (?:won'?t|will not|would not|wouldn'?t) (?:need|want|require|be)"
    rf"|never(?! (?:{_MEANT}|mind)\b)"
    r"|without|with no"
    rf"|(?<!there )(?<!why )(?:is|are)n'?t(?! (?:{_MEANT}|sure|clear|working)\b)"
    r"|(?<!why )(?<!or )(?<!if )(?<!could )(?<!can )(?<!does )(?<!did )(?<!do )(?<!have )"
    r"(?<!has )(?<!there is )(?<!there are )not"
    rf"(?! (?:{_MEANT}|sure|yet|until|enough|working|to mention|clear|bad)\b)"
    r"|no need (?:to|for|of)|no more|no longer (?:need|want)s?|neither|nor"
    r"|instead of|rather than|other than|in place of|as opposed to|except|(?:everything|all) but"
    r"|hold off on"
    r")\b"
)
# Verbs whose object is not wanted; what follows a preposition is no longer their object.
_LEFT_OUT = compiled_later(
    r"(?<!not )(?<!n't )(?<!nt )(?<!never )\b(?:avoid|skip|omit|leave out|refrain from|stop|exclude"
    r"|ignore|never mind"
    r"|forget(?: about)?|avoiding|skipping|omitting|leaving out|excluding|ignoring)"
    r"(?: (?!(?:in|on|of|for|from|to|with|and|when|while|by|at|as|if|before|after|than|that|so)\b)"
    r"[\w'-]+){0,4}\s*$"
)
# A list cannot go on behind the comma that closes these.
_CLOSED_BY_COMMA = compiled_later(
    r"instead of|rather than|other than|in place of|as opposed to|except|与其|不是|并非|而非"
)
_CLAUSE_WORD = compiled_later(r"\b(?:is|are|was|were|it|them|this|that|me|us|please)\b")
_ITEM_START = compiled_later(
    r"\s*(?:(?:\w+ ){0,2}(?:or|nor|and) |[或和])?(?:(?:a|an|the|any|new|more|other|even) )?[^\S\n]*"
)
_LIST_PARTS = 6
_NEGATIVE_QUESTION = compiled_later(r"\s*(?:\w+n't|(?:is|are|do|does|should|would) not) ")
_NO_AT_START = compiled_later(r"^\W*(?:(?:and|but|or|so|please) )?no (?:\w+[ -])?$")
_EXISTS = compiled_later(
    r"\b(?:exists?|yet|found|so far|available|are|is|were|was|have|has|there)\b"
)
_AFTER_ENGLISH = compiled_later(
    r"^\W{0,2}\s*(?:\w+ ){0,2}?(?:(?:is|are|was|were|be)(?:n'?t| not)|not) "
    r"(?:needed|necessary|required|wanted|requested|allowed|part of|what i)"
    r"|^\s*(?:is|are) (?:unnecessary|out of scope|off the table)"
    r"|^\s*can wait\b"
)

_CHINESE = compiled_later(
    r"不要(?![忘漏错]|紧|少|遗漏|误)"
    r"|(?<![识特区分级类性个辨鉴差判告离派国送甄有无])"
    r"别(?![人的名墅处致扭忘漏错落少国家样称针让])"
    r"|请勿|切勿|勿(?!忘)|无需|无须|毋须|毋需|不需要|不需|不用|不必|不该|不应|不许|不准|不可以"
    r"|不得(?!不|已)|不想|不打算|不急着|不急于|先不|暂不|暂时不|不再|没必要|没有必要|用不着"
    r"|甭|不可(?![不或避思忽少缺能以])|犯不着|不是|并非|而非|与其"
)
# Verbs whose object is not wanted; the object stands right behind them.
_LEFT_OUT_CHINESE = compiled_later(
    r"(?:(?<![不没])(?:禁止|避免|跳过|略过|省略|省去|停止|免去)"
    r"|不(?:做|写|画|弄|搞|进行|加|添加|生成|出|提供|给|包含|包括|涉及|使用|考虑|碰|动|去))"
    r"[^\s，。]{0,2}$"
)
_ADJACENT = compiled_later(r"(?:^|[^得能可会无莫要])不$")
_NOT_THAT = compiled_later(r"不得不|不能不|不可不|莫不|无不|不会不")
_AFTER_CHINESE = compiled_later(
    r"^(?:的(?:事|部分|步骤|工作)?)?(?:就|先|也|都|暂时|目前|这次|今天|可以|则)*"
    r"(?:不用|不需要|不必|不要|不做|不写|不画|不弄|不管|没必要|无需|免|算|跳过|省略|略过|省"
    r"|放着|放一放|以后再说|暂缓|推迟)(?:了|做|写|弄|管|改|加)*[吧啦呢哈]?$"
)


def cue_before(text: str, start: int, end: int) -> str:
    """Return the words that say a stretch is not wanted, '' where it is.

    Args:
        text: folded.
    """
    text = text.translate(_APOSTROPHES)
    begin = _clause_start(text, start)
    before = text[begin:start]
    after = text[end : _clause_end(text, end)]
    if _NEGATIVE_QUESTION.match(before) and text[end + len(after) : end + len(after) + 1] == "?":
        return ""
    return (
        _cue_in(before, text[start])
        or _match(_LEFT_OUT, before)
        or _list_cue(text, start)
        or _no_cue(before, after)
        or _match(_AFTER_ENGLISH, after)
        or _match(_AFTER_CHINESE, after.strip())
        or _besides(before, text[end : end + 40])
    )


@lru_cache(maxsize=64)
def _ends(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(found.span() for found in _CLAUSE_END.finditer(text))


def _clause_start(text: str, place: int) -> int:
    return max((end for _, end in _ends(text) if end <= place), default=0)


def _clause_end(text: str, place: int) -> int:
    return min((start for start, _ in _ends(text) if start >= place), default=len(text))


def _cue_in(before: str, first: str = "") -> str:
    """Return the last cue of the words before a stretch, unless the clause turns behind it.

    Args:
        first: the character that the stretch begins with.
    """
    found = [*_ENGLISH.finditer(before), *_CHINESE.finditer(before)]
    found += _LEFT_OUT_CHINESE.finditer(before)
    cues = [
        cue[0]
        for cue in found
        if not _TURN.search(before, cue.end()) and not _asks_or_insists(before, cue)
    ]
    if cues:
        return cues[-1].strip()
    bare = _ADJACENT.search(before) and before[-2:-1] != first
    return "不" if bare else ""


def _asks_or_insists(before: str, cue: re.Match[str]) -> bool:
    """Say whether a cue is the middle of a question (要不要, 能不能) or denies itself (不得不)."""
    asks = cue[0][0] == "不" and cue.start() > 0 and before[cue.start() - 1] == cue[0][1:2]
    around = before[max(0, cue.start() - 2) : cue.end() + 1]
    return asks or bool(_NOT_THAT.search(around))


def _list_cue(text: str, start: int) -> str:
    """Return the cue of an earlier part of a list: "do not make charts, tables or slides"."""
    begin = _clause_start(text, start)
    parts: list[str] = []
    here = begin
    while here and text[here - 1] in ",，" and len(parts) < _LIST_PARTS:
        earlier = _clause_start(text, here - 1)
        parts.append(text[earlier : here - 1])
        cue = _cue_in(parts[-1]) or _match(_LEFT_OUT, parts[-1])
        if cue:
            carried = not _CLOSED_BY_COMMA.fullmatch(cue) and all(map(_is_item, parts[:-1]))
            return cue if carried and _is_listed(text, begin, start) else ""
        here = earlier
    return ""


def _is_item(part: str) -> bool:
    return len(part.split()) <= 3 and not _CLAUSE_WORD.search(part)


def _is_listed(text: str, begin: int, start: int) -> bool:
    """Say whether a stretch is one of the things of a list that a conjunction closes."""
    before = text[begin:start]
    if not _ITEM_START.fullmatch(before):
        return False
    if re.search(r"\b(?:or|nor|and)\b|[或和]", before):
        return True
    rest = _clause_end(text, begin)
    for _ in range(_LIST_PARTS):
        part = text[begin:rest]
        if len(part.split()) > 5 or _CLAUSE_WORD.search(part):
            return False
        if re.search(r"\b(?:or|nor|and)\b|[或和]", part):
            return True
        if text[rest : rest + 1] not in (",", "，"):
            return False
        begin, rest = rest + 1, _clause_end(text, rest + 1)
    return False


def _besides(before: str, following: str) -> str:
    """Return 除了 where the others are wanted, not where it means "not only"."""
    left_out = re.match(r"[^，,。]{0,4}[，,]\s*(?:其他|其余|别的|剩下|全)", following)
    return "除了" if left_out and re.search(r"除了?[^，。]{0,2}$", before) else ""


def _no_cue(before: str, after: str) -> str:
    """Return "no" where it opens the clause and orders something, not where it states a lack."""
    return "no" if _NO_AT_START.match(before) and not _EXISTS.search(after) else ""


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0].strip() if found else ""
