"""What a right and a wrong answer to a prompt of the sets may look like, and how each is graded.

A task that judges the form alone says nothing on what is right: there the answers that it must turn away are not valid.
"""

from __future__ import annotations

import json

import pytest

from orchestrator.workloads.built_in import SETS, built_in
from orchestrator.workloads.grading import grade

BY_ID = {prompt.id: prompt for name in SETS for prompt in built_in(name)}
TASKS = {name: json.loads(prompt.task.canonical) for name, prompt in BY_ID.items() if prompt.task is not None}

TABLES = "\n\n".join(
    f"Table of {one}\n" + "\n".join(f"{one} × {by} = {one * by}" for by in range(1, 16)) for one in (7, 8, 9)
)
PARITY = [f"{one}, {'홀수' if one % 2 else '짝수'}" for one in range(1, 101)]
NUMBERS = "\n".join(
    f"{number}: a sentence says what it is."
    for number in (
        "1874", "3.2", "eleven", "1931", "10", "17", "8", "5", "six", "11", "15", "forty", "48-2207", "14", "two",
        "0555-3918",
    )
)  # fmt: skip
FACTS = "\n".join(
    f"{at}. {fact}"
    for at, fact in enumerate(
        (
            "다리는 2018년에 짓기 시작했다.", "다리는 2021년 가을에 열렸다.", "길이는 640미터이다.", "차로는 네 개이다.",
            "북쪽에 자전거 길이 있다.", "1,280억 원이 들었다.", "등은 212개이다.", "4월과 10월에는 자정에 끈다.",
            "도서관은 월요일에 쉰다.", "평일에는 여덟 시까지 연다.", "주말에는 다섯 시까지 연다.", "일곱 권까지 빌린다.",
            "달못은 동부에 있다.", "큰샘호는 남부에 있다.", "거울호는 동부에 있다.", "갈대못은 서부에 있다.",
        ),
        start=1,
    )
)  # fmt: skip
QUERY = "SELECT customer, SUM(total) AS s FROM orders{} GROUP BY customer ORDER BY s DESC;"
KO_TRANSLATED = "등대는 어느 해 가을에 처음 불을 밝혔다. " + "그는 바람과 배의 수를 적는다. " * 20
EN_TRANSLATED = "The lighthouse on the cape was first lit in autumn. " + "He notes the wind and the ships. " * 25

RIGHT = {
    "small-fact-1": ("Earth", " Earth\n\nQuestion: What is it?", "We live on Earth."),
    "small-fact-2": ("The answer is sheep.", "Sheep"),
    "small-arithmetic-1": (
        "5", " 5\n\nQuestion: What is 8 - 4?", "5.", "**5**", "9 - 4 = 5", "9 – 4 = 5.", "The answer is 5",
        "The answer is **5**.", "9 minus 4 equals 5.", "Five.", "9 - 4 = 5, so the answer is 5.", "5, because 9 - 4 = 5.",
    ),
    "small-arithmetic-2": ("12", "7 + 5 = 12", "The answer is: 12.", "7 plus 5 is twelve."),
    "small-arithmetic-3": ("42", "6 × 7 = 42\n\nThe answer is 42.", "6 * 7 = **42**"),
    "small-copy-1": (
        "The old bridge crosses the quiet river.", '"The old bridge crosses the quiet river."',
        "“The old bridge crosses the quiet river.”", " The old bridge crosses the quiet river.\n\nSentence: Next",
    ),
    "small-copy-2": ("Seven green boats wait in the small harbour.", '"Seven green boats wait in the small harbour".'),
    "small-extraction-1": (
        " The train leaves from track 3.", "3", "Track 3\n\nQuestion: What?", "Three.", "The answer is 3.",
        "The train to the coast leaves at 8:40 from track 3.", "track number 3",
    ),
    "small-extraction-2": (
        "Blue", "Tom's bicycle is blue.", "The colour of Tom's bicycle is blue.", "Mia has a red bicycle and Tom has a blue one.",
        " blue\nQuestion: What colour is Mia's bicycle?\nAnswer: red", "Tom has a blue one.",
        "Mia has a red bicycle and Tom has a blue one. The answer is blue.\n\nMia has a red bicycle",
    ),
    "en-summary-1": (
        "The council closes the market street to cars on Saturdays for a trial of six months.",
        "From April the market street will be car-free on Saturdays, and in October the council decides how it goes on.",
    ),
    "en-summary-2": ("Bees dance to tell each other where the flowers are.",),
    "en-summary-3": ("The Press Leaves the Cellar", '"An Old Press Turns Again"'),
    "en-summary-4": ("- One.\n- Two.\n- Three.",),
    "en-summary-5": ("Whether to continue closing the market street to cars on Saturdays.", "It decides whether the trial will go on."),
    "en-summary-6": ("Bees dance to show their friends where flowers are! The longer they waggle, the farther it is.",),
    "ko-summary-1": ("시의회는 4월부터 여섯 달 동안 토요일마다 시장 거리에 차를 막아 보기로 했다.",),
    "ko-summary-2": ("벌은 춤을 추어 꽃이 있는 곳을 서로 알린다.",),
    "ko-summary-3": ("다시 도는 낡은 인쇄기",),
    "ko-summary-4": ("- 하나\n- 둘\n- 셋",),
    "ko-summary-5": ("방문객을 세고 가게들의 의견을 들은 뒤 계속할지 정한다.",),
    "ko-summary-6": ("꿀벌은 춤을 춰서 친구에게 꽃이 있는 곳을 알려 줘요. 오래 춤출수록 꽃은 멀리 있어요!",),
    "en-translation-1": ("도서관은 아침 아홉 시에 엽니다.", "오전 9시에 도서관이 문을 엽니다."),
    "en-translation-2": ("우산을 버스에 두고 내렸어요.",),
    "en-translation-3": ("우체국이 어디에 있는지 알려 주시겠어요?",),
    "en-translation-4": (
        "눈 때문에 다리가 폐쇄되었습니다.", "눈 때문에 교량이 폐쇄되었습니다", "폭설로 다리가 폐쇄되었습니다", "다리가 눈으로 막혔다.",
    ),
    "en-translation-5": ("The apples I bought yesterday were very sweet.",),
    "en-translation-6": ("The train arrived thirty minutes late.", "The train was half an hour late."),
    "en-translation-7": ("Could you close the window, please?", "Would you mind shutting the window?", "Could you please keep the window closed?"),
    "en-translation-8": (KO_TRANSLATED + "\n\n" + "그는 더 그린다. " * 20 + "그리고 충분하다는 말뿐이다.",),
    "ko-translation-1": (
        "When spring comes, flowers bloom by the river.", "When spring comes, blossoms open along the river.",
        "Flowers bloom along the river in spring.",
    ),
    "ko-translation-2": ("Take this medicine twice a day.",),
    "ko-translation-3": ("Our cat only plays at night.",),
    "ko-translation-4": ("I would like to buy two tickets.", "A couple of tickets, please."),
    "ko-translation-5": ("그 가게는 월요일을 제외하고 매일 엽니다.", "가게는 월요일 빼고 날마다 연다.", "가게는 월요일만 쉽니다."),
    "ko-translation-6": ("금요일까지 청구서를 보내 주세요.", "계산서를 금요일까지 보내 주십시오."),
    "ko-translation-7": ("동생은 지난여름에 수영을 배웠다.",),
    "ko-translation-8": (EN_TRANSLATED + "\n\n" + "The new keeper draws more. " * 10 + "The last word is enough.",),
    "en-extraction-2": ("11", "Eleven", "eleven minutes", "It takes eleven minutes to fill.", "The lock takes 11 minutes to fill.", "**11**"),
    "en-extraction-4": (
        "16:30", "16:30.", "16.30", "The café closes at 16:30.", "4:30 pm", "04:30 p.m.",
        "The museum closes at 17:00, so the café closes at 16:30.",
    ),
    "en-extraction-6": ("0555-3918", "0555-3918.", "Call 0555-3918 and ask for the workshop.", "0555–3918"),
    "en-extraction-9": (NUMBERS,),
    "ko-extraction-6": (
        "3층 열람실", "3층 열람실입니다.", "열람실", "삼층 열람실", "도서관 3층 열람실이다.", "3층의 열람실", "3층",
        "노트북을 쓸 수 없는 곳은 3층 열람실입니다.", "3층 열람실에서는 노트북을 쓸 수 없다.",
    ),
    "ko-extraction-7": ("거울호", "거울호입니다.", "**거울호**", "가장 깊은 호수는 거울호이다.", "가장 깊은 호수의 이름은 거울호입니다."),
    "ko-extraction-9": (FACTS,),
    "en-chat-6": ("Feathers.", "Two", "two."),
    "ko-chat-4": ("후추", "후추야.", "후추입니다.", "후추예요!", "후추였어."),
    "ko-chat-8": ("내일 비가 온다고 하니 우산을 꼭 챙기세요!", "내일은 우산을 챙기세요."),
    "en-arithmetic-10": (TABLES, TABLES.replace("×", "x").replace("Table of", "###"), "Here they are:\n\n" + TABLES),
    "ko-arithmetic-9": ("\n".join(PARITY), "\n".join(PARITY).replace(", ", ",")),
    "en-code-9": (
        QUERY.format(" WHERE EXTRACT(YEAR FROM ordered_on) = 2024"),
        QUERY.format("\nWHERE ordered_on >= '2024-01-01' AND ordered_on < '2025-01-01'\n"),
    ),
    "en-reasoning-9": ("The lake is free.\nAnswer: the lake", "Answer: **Zoo**", "Answer: mine tour."),
    "ko-reasoning-9": ("호수는 무료이다.\n답: 호수", "답: 동물원이다."),
    "en-editing-4": (
        "Put the flour into a bowl, add the salt, and make a hollow in the middle.\nPour in the milk slowly and stir until the "
        "dough is smooth.\nLet it rest for an hour under a cloth.",
    ),
    "en-editing-9": (
        "The library opens at nine o'clock. Please return your books before Friday.",
        "The library opens at nine o’clock. Please return your books before Friday.",
    ),
    "ko-editing-4": (
        "먼저 쌀을 세 번 씻고 삼십 분 동안 물에 불린다.\n그다음 솥에 넣고 센 불에 끓인다.\n끓기 시작하면 불을 줄이고 십오 분 더 둔다.",
    ),
    "ko-json-2": ('{"나라": "대한민국", "수도": "서울", "대륙": "아시아"}', '{"나라": "대한민국", "수도": "서울특별시", "대륙": "아시아"}'),
}  # fmt: skip

WRONG = {
    "small-fact-1": ("Mars", " Mars\n\nEarth"),
    "small-fact-2": ("The woolly mammoth", "Cows"),
    "small-arithmetic-1": (
        "5.5", "6. Another: 10 - 5 = 5", "9 - 4 = 3", "-5", "15", "50", "9 - 4 = 5.5", "3\n5", "The answer is -5.", "9 - 4 = 15",
        "Fifty-five", "4",
    ),
    "small-arithmetic-2": ("12.7", " 7 + 5 = 13", "7 + 5 = 12.7", "120", "1, 12"),
    "small-arithmetic-3": ("6", "6 × 7 = 48", "42.5", "6 × 7 = 36. 42"),
    "small-copy-1": ("The old bridge is quiet.", "The old bridge crosses the quiet riverbank.", '"The old bridge"'),
    "small-copy-2": ("Seven boats wait in the small harbour.",),
    "small-extraction-1": ("track 8, in 3 hours", " The train leaves from track 8.", "8:40", "Track 8 or track 3", "At 8:40 from track 8."),
    "small-extraction-2": ("Red\n\nblue", "Mia's bicycle is blue.", "red and blue", "Mia has a red bicycle and Tom has a blue one. The answer is red."),
    "en-summary-1": ("Why would anyone care?", "I cannot help with that request."),
    "en-summary-2": ("I cannot help with that.", "The text is about the flowers in the sun."),
    "en-summary-3": ("A very long title about the printing press in the cellar of the town",),
    "en-summary-4": ("One. Two. Three.", "- One.\n- Two.", "- One.\n- Two.\n- Three.\n- Four."),
    "en-summary-5": (
        "The trial failed.",
        "In October the council will count all the visitors and ask the shops before it decides whether to go on with it.",
    ),
    "en-summary-6": ("Bees dance.", "One. Bees dance. They fly.", "Flowers are nice. The sun shines."),
    "ko-summary-1": ("차례대로 봅시다", "차례대로 하나씩 봅시다.", "시장에 간다. 토요일이다. 차가 없다."),
    "ko-summary-2": ("벌써 다 읽은 글입니다.", "정말 모르겠습니다."),
    "ko-summary-3": ("지하실에서 꺼낸 것",),
    "ko-summary-4": ("하나, 둘, 셋",),
    "ko-summary-5": ("정말 모르겠습니다.", "정말로 저는 모르겠습니다."),
    "ko-summary-6": ("벌은 춤을 춥니다.", "해가 있어요. 꽃이 있어요."),
    "en-translation-1": ("도서관은 아침에 엽니다.",),
    "en-translation-2": ("우산을 샀어요.",),
    "en-translation-3": ("은행이 어디예요?",),
    "en-translation-4": ("다리가 폐쇄되었습니다.", "비 때문에 다리가 막혔다."),
    "en-translation-5": ("The apples were sour.",),
    "en-translation-6": ("The train arrived.", "The train was three minutes late."),
    "en-translation-7": ("Please break the window", "Open the window, please.", "Close the door."),
    "en-translation-8": ("등대가 있다.", "등대 충분"),
    "ko-translation-1": ("The river is cold in winter.",),
    "ko-translation-2": ("Take this medicine once a day.",),
    "ko-translation-3": ("Our cat plays by day.", "The category of nights"),
    "ko-translation-4": ("I bought a ticket.",),
    "ko-translation-5": ("월요일에만 연다", "그 가게는 월요일에 엽니다."),
    "ko-translation-6": ("금요일에 만나요.",),
    "ko-translation-7": ("동생은 겨울에 스키를 배웠다.",),
    "ko-translation-8": ("lighthouse", "lighthouse\n\nenough"),
    "en-extraction-2": ("12", "1874", "11.5", "Twelve", "3.2\n11", "111"),
    "en-extraction-4": ("17:00", "16:00", "04:30", "4:30", "16:300", "15:00\n16:30"),
    "en-extraction-6": ("48-2207", "0555-39180", "48-2207 or 0555-3918", "555-3918"),
    "en-extraction-9": ("1874 3918", "1874\n3918"),
    "ko-extraction-6": ("3층이 아니라 1층", "1층", "1층 열람실", "도서관", "3층 열람실에서는 쓸 수 있다."),
    "ko-extraction-7": ("달못, 큰샘호, 거울호, 갈대못", "달못\n큰샘호\n거울호\n갈대못", "달못", "거울호가 아니라 달못"),
    "ko-extraction-9": ("640 212", "1. 2018년\n2. 640\n3. 212"),
    "en-chat-6": ("Iron", "One", "neither"),
    "ko-chat-4": ("초록", "초록이야."),
    "ko-chat-8": ("내일은 맑아요.", "비가 온대. 우산을 챙겨."),
    "en-arithmetic-10": ("9 × 15 = 135", TABLES.replace("8 × 3 = 24", "8 × 3 = 25"), TABLES.replace("7 × 9 = 63\n", "")),
    "ko-arithmetic-9": ("100, 짝수", "\n".join(PARITY[50:]), "\n".join(PARITY).replace("47, 홀수", "47, 짝수")),
    "en-code-9": (QUERY.format(""), QUERY.format(" WHERE ordered_on < '2023-01-01'")),
    "en-reasoning-9": ("Answer: I do not know", "the lake", "Answer: zoo, lake and mine"),
    "ko-reasoning-9": ("답: 모르겠다", "호수", "답: 동물원, 호수, 동굴"),
    "en-editing-4": ("Put the flour into a bowl, add the salt, and make a hollow in the middle. Pour in the milk slowly and stir",),
    "en-editing-9": ("The librery opens at nine o'clock. Please return your books before Friday.",),
    "ko-editing-4": ("먼저 쌀을 세 번 씻고 삼십 분 동안 물에 불린다. 그다음 솥에 넣고 센 불에 끓인다.",),
    "ko-json-2": ('{"나라": "대한민국", "수도": "부산", "대륙": "아시아"}', '{"나라": "대한민국", "수도": "서울", "대륙": "유럽"}'),
}  # fmt: skip


def judges_form(name: str) -> bool:
    return TASKS[name]["judges"] == "form"


@pytest.mark.parametrize(("name", "answer"), [(name, one) for name, answers in RIGHT.items() for one in answers])
def test_a_right_answer_is_right(name, answer):
    found = grade(BY_ID[name].task, answer, finish="stop")
    assert (found.valid, found.correct) == (True, None if judges_form(name) else True), found


@pytest.mark.parametrize(("name", "answer"), [(name, one) for name, answers in WRONG.items() for one in answers])
def test_a_wrong_answer_is_not_right(name, answer):
    found = grade(BY_ID[name].task, answer, finish="stop")
    if judges_form(name):
        assert (found.valid, found.correct) == (False, None), found
    else:
        assert found.correct is False, found


def test_every_task_with_an_expression_has_both_lists():
    """An expression can be too wide or too narrow; only answers can show it."""
    written = {name for name, rules in TASKS.items() if rules["kind"] == "regex" and not name.startswith("context-")}
    assert written - set(RIGHT) == set()
    assert set(RIGHT) == set(WRONG)


def test_where_only_key_words_are_looked_for_nothing_is_called_right():
    for name, rules in TASKS.items():
        keyword = BY_ID[name].category in ("summary", "translation") or name == "ko-chat-8"
        assert not keyword or rules["judges"] == "form", name


@pytest.mark.parametrize("name", TASKS)
def test_an_echo_of_the_prompt_is_no_right_answer(name):
    """The code of a prompt that asks for its repair parses, so there an echo has the form, and nothing more is said."""
    prompt = BY_ID[name]
    for echo in (prompt.text, prompt.text + "\n" + prompt.text, prompt.conversation[-1].content):
        found = grade(prompt.task, echo, finish="stop")
        assert found.correct is not True, found
        assert found.valid is not True or TASKS[name]["judges"] == "answer", found
