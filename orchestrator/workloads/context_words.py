"""What the generated reports are made of: things, places and sentences in English and Korean.

A remark may name {goods}, {store}, {carrier}, {number} and {weather}; the report fills them. Korean particles stand as
`이/가`, `은/는`, `을/를`, `와/과` behind a word and are chosen by its last syllable.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Words:
    """The tables of one language."""

    goods: tuple[str, ...]
    stores: tuple[str, ...]
    carriers: tuple[str, ...]
    times: tuple[str, ...]
    weather: tuple[str, ...]  # of any season, and a hindrance: every remark that names it says so
    titles: tuple[str, ...]
    arrivals: tuple[str, ...]
    seals: tuple[str, ...]
    remarks: tuple[str, ...]


ENGLISH = Words(
    goods=(
        "dried apples", "lamp oil", "roof tiles", "wool blankets", "barley", "window glass", "copper wire",
        "honey", "garden seed", "writing paper", "salted fish", "clay pots", "candles", "rope", "walnuts",
        "soap", "nails", "linen", "tea", "bricks", "beeswax", "lentils", "paint", "leather straps",
    ),
    stores=(
        "the north store", "the quay store", "the old barn", "the mill loft", "the stone cellar",
        "the east shed", "the rope house", "the upper store", "the bridge store", "the long hall",
        "the corner store", "the south shed",
    ),
    carriers=(
        "the river boat", "the morning train", "a hired cart", "the coast ship", "the mountain lorry",
        "a mule train", "the post van", "the evening ferry", "two handcarts", "the canal barge",
    ),
    times=(
        "On the morning of {date}", "Late on {date}", "Shortly after noon on {date}", "On {date}",
        "Before dawn on {date}", "Towards evening on {date}",
    ),
    weather=(
        "rain had fallen for hours", "a hard wind blew from the sea", "fog lay over the yard",
        "heavy showers came and went", "a thunderstorm stood over the valley", "low clouds had brought rain and gloom",
        "the rain had turned the lanes to mud", "gusts drove the rain across the yard",
        "a storm had come in from the coast", "the drizzle would not stop",
    ),
    titles=(
        "Report of the harbour stores, volume {number}", "Goods book of the valley stores, part {number}",
        "Arrivals at the river stores, book {number}", "Ledger of the market stores, number {number}",
        "Intake record of the island stores, section {number}",
    ),
    arrivals=(
        "{when} {store} took in {count} crates of {goods} from {carrier}.",
        "{when} {carrier} brought {count} crates of {goods} to {store}.",
        "{when} {count} crates of {goods} came to {store} by {carrier}.",
        "{when} the clerk of {store} counted {count} crates of {goods} out of {carrier}.",
    ),
    seals=(
        "The seal read {seal}.", "They were closed with seal {seal}.", "The clerk wrote down seal {seal}.",
        "On the first crate was seal {seal}.", "Seal {seal} was whole.",
    ),
    remarks=(
        "{number} lids were loose and had to be nailed down before anything could be stacked.",
        "Because {weather}, the last part of the way took longer than planned.",
        "The crates of {goods} were stacked by the door, since nobody knew how soon they would be called for.",
        "A second count in the afternoon came to the same figure.",
        "One crate smelled of smoke, but nothing in it had been touched by fire.",
        "{carrier_start} left again within the hour, empty except for a few sacks of straw.",
        "The scales had been tested the evening before and were found to be true.",
        "Since {weather}, everything was covered with sailcloth until it was inside.",
        "The clerk asked for {number} more shelves, which the carpenter promised for the end of the week.",
        "Some of it will go on to {store} as soon as there is room there.",
        "The papers were complete, although one page was hard to read where it had become wet.",
        "It was the largest delivery of its kind in that month, and it filled the whole back wall.",
        "Two helpers from the mill carried for most of the day and were paid in flour.",
        "Nothing was broken, and the keeper thanked the drivers for their care.",
        "The old lock was changed for a new one, because its key had begun to turn too easily.",
        "{weather_start}, so the work took long and was finished by lamplight.",
        "A buyer looked at the {goods} the same day and offered a price that was thought to be low.",
        "The bill will be settled together with that of the delivery before it.",
        "For {number} of the crates the owner could not be named, and they stand apart until someone asks for them.",
        "The floor beneath them was swept first, because mice had been seen there in the spring.",
        "The next delivery of {goods} is expected when the roads are open again.",
        "There was talk of moving them to {store}, but it was decided to leave them where they were.",
        "The weight agreed with the letter that had come ahead of them.",
        "A label had come off on the way and was found at the bottom of the cart.",
        "The keeper noted that crates of {goods} keep better in a dry room than in a cool one.",
        "After that the gate was shut, and the dog was let into the yard.",
    ),
)  # fmt: skip

KOREAN = Words(
    goods=(
        "말린 사과", "등잔 기름", "기와", "양털 담요", "보리", "창유리", "구리선", "꿀", "텃밭 씨앗", "편지지",
        "절인 생선", "질그릇", "양초", "밧줄", "호두", "비누", "못", "아마포", "찻잎", "벽돌", "밀랍", "렌틸콩",
        "물감", "가죽끈",
    ),
    stores=(
        "북쪽 창고", "부두 창고", "오래된 헛간", "방앗간 다락", "돌 지하실", "동쪽 광", "밧줄 창고",
        "위쪽 창고", "다리 옆 창고", "긴 곳간", "모퉁이 창고", "남쪽 광",
    ),
    carriers=(
        "강배", "아침 기차", "빌린 수레", "연안선", "산길 트럭", "노새 행렬", "우편 마차", "저녁 나룻배",
        "손수레", "운하 짐배",
    ),
    times=(
        "{date} 아침에", "{date} 늦게", "{date} 정오가 조금 지나", "{date}에", "{date} 동트기 전에",
        "{date} 저녁 무렵",
    ),
    weather=(
        "몇 시간째 비가 내려서", "바다에서 거센 바람이 불어와서", "마당에 안개가 짙게 깔려서",
        "세찬 소나기가 오락가락해서", "골짜기에 천둥비가 머물러서", "낮은 구름이 비를 몰고 와서",
        "비에 길이 진창이 되어서", "돌풍이 마당으로 비를 몰아쳐서", "바닷가에서 폭풍이 밀려와서",
        "이슬비가 그치지 않아서",
    ),
    titles=(
        "항구 창고 보고서 제{number}권", "골짜기 창고 물품 장부 제{number}부",
        "강가 창고 입고 기록 제{number}책", "시장 창고 원장 제{number}호", "섬 창고 반입 기록 제{number}편",
    ),
    arrivals=(
        "{when} {store}에서는 {carrier}로 온 {goods} {count}상자를 받았다.",
        "{when} {carrier} 편으로 {goods} {count}상자가 {store}에 들어왔다.",
        "{when} {goods} {count}상자가 {carrier}에 실려 {store}에 도착했다.",
        "{when} {store} 서기는 {carrier} 편에 온 {goods} {count}상자를 세어 넣었다.",
    ),
    seals=(
        "상자에는 봉인 {seal} 표가 붙어 있었다.", "봉인 번호는 {seal} 그대로였다.",
        "서기는 봉인 {seal} 번호를 적어 두었다.", "첫 상자의 봉인 {seal} 표는 온전했다.",
    ),
    remarks=(
        "뚜껑 {number}개가 헐거워서 쌓기 전에 못을 다시 박아야 했다.",
        "{weather} 마지막 길은 생각보다 오래 걸렸다.",
        "언제 찾으러 올지 몰라 {goods:을/를} 문 가까이에 쌓아 두었다.",
        "오후에 다시 세어 보았으나 수는 같았다.", "한 상자에서 연기 냄새가 났지만 안의 물건은 멀쩡했다.",
        "{carrier:은/는} 짚 몇 자루만 싣고 한 시간 안에 다시 떠났다.",
        "저울은 전날 저녁에 살펴보았고 틀림이 없었다.",
        "{weather} 안으로 들일 때까지 모두 돛천으로 덮어 두었다.",
        "서기는 선반 {number}개를 더 부탁했고 목수는 주말까지 만들어 주기로 했다.",
        "자리가 나면 일부는 {store:으로/로} 옮길 것이다.",
        "서류는 다 갖추어져 있었으나 젖은 한 장은 읽기 어려웠다.",
        "그달에 온 것 가운데 가장 큰 짐이어서 뒷벽을 가득 채웠다.",
        "방앗간에서 온 두 사람이 온종일 나르고 품삯으로 밀가루를 받았다.",
        "깨진 것은 하나도 없었고 창고지기는 마부들에게 고마워했다.",
        "열쇠가 너무 쉽게 돌아가서 낡은 자물쇠를 새것으로 바꾸었다.",
        "{weather} 일이 길어졌고 등불을 켜고서야 끝났다.",
        "그날 한 상인이 {goods:을/를} 보고 값을 불렀으나 모두 낮다고 여겼다.",
        "값은 그 앞에 온 짐과 함께 치르기로 했다.",
        "{number}상자는 임자를 알 수 없어 찾는 사람이 올 때까지 따로 두었다.",
        "봄에 쥐가 나온 적이 있어 바닥부터 먼저 쓸었다.", "다음 {goods:은/는} 길이 다시 열리면 올 것이다.",
        "{store:으로/로} 옮기자는 말도 있었으나 그대로 두기로 했다.", "무게는 먼저 온 편지에 적힌 것과 맞았다.",
        "오는 길에 떨어진 이름표는 수레 바닥에서 찾았다.",
        "창고지기는 {goods:이/가} 서늘한 곳보다 마른 곳에서 더 오래간다고 적었다.",
        "그 뒤 대문을 닫고 개를 마당에 풀어 놓았다.",
    ),
)  # fmt: skip

LANGUAGES = {"en": ENGLISH, "ko": KOREAN}
MONTHS_EN = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
