"""Prompts of the kinds that the task sets hold, drawn at random, for SmolLM2 to write its draft's training text.

None of them is taken from a task set of this project: numbers, names and objects are drawn anew, so that what the
draft learns is how the target writes, not the answers it will be measured on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

#: What SmolLM2's own template puts before a conversation without a system message.
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Iris", "Jonas", "Lena", "Mark", "Nina",
         "Oscar", "Paula", "Ruth", "Sam", "Tom", "Vera", "Will", "Minsu", "Jiyeon", "Maria", "Peter")  # fmt: skip
CITIES = ("Paris", "Berlin", "Madrid", "Rome", "Oslo", "Vienna", "Lisbon", "Tokyo", "Seoul", "Cairo", "London",
          "Boston", "Chicago", "Sydney", "Toronto", "Dublin", "Prague", "Athens", "Lima", "Delhi")  # fmt: skip
COUNTRIES = ("France", "Germany", "Spain", "Italy", "Norway", "Austria", "Portugal", "Japan", "South Korea", "Egypt",
             "Canada", "Australia", "Ireland", "Greece", "Peru", "India", "Poland", "Sweden", "Brazil", "Mexico",
             "China", "Kenya", "Turkey", "Finland", "Hungary", "Denmark", "Chile", "Cuba")  # fmt: skip
THINGS = ("apple", "book", "pencil", "chair", "lamp", "bottle", "coin", "ticket", "orange", "stamp", "cup", "shirt",
          "bicycle", "umbrella", "candle", "plate", "box", "key", "phone", "bag", "clock", "spoon")  # fmt: skip
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "orange", "purple", "grey")
ANIMALS = ("cat", "dog", "horse", "cow", "rabbit", "bird", "fish", "lion", "tiger", "bear", "frog", "snake", "whale",
           "penguin", "elephant", "monkey", "sheep", "duck")  # fmt: skip
JOBS = ("teacher", "doctor", "nurse", "driver", "baker", "farmer", "lawyer", "painter", "engineer", "cook", "writer",
        "pilot", "student", "gardener")  # fmt: skip
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TOPICS = ("photosynthesis", "gravity", "the water cycle", "recycling", "the moon", "rain", "volcanoes", "magnets",
          "electricity", "the internet", "healthy food", "sleep", "exercise", "friendship", "reading books",
          "learning a language", "climate", "trees", "the ocean", "bees", "bridges", "music", "history", "cooking",
          "trains", "computers", "saving money", "gardens", "rivers", "mountains", "vaccines", "the heart",
          "dinosaurs", "libraries", "chess", "football", "solar power", "bread", "tea", "coffee")  # fmt: skip
SENTENCES = (
    "The train to {city} leaves at {hour}:{minute} from platform {small}.",
    "{name} bought {small} {thing}s in {city} on {day}.",
    "The {colour} {thing} costs {big} dollars.",
    "{name} is a {age} year old {job} from {city}.",
    "The meeting with {name} was moved to {day} at {hour} o'clock.",
    "A {colour} {animal} sat under the {thing} and waited for {name}.",
    "The library in {city} is closed in {month} because the roof is being repaired.",
    "{name} has worked as a {job} for {small} years and wants to move to {city}.",
    "Order {big} was sent to {name} on {month} {small} and contains {small} {thing}s.",
    "In {month} the {animal}s come down to the river near {city}.",
    "The new bridge is {big} meters long and was opened by the {job} {name}.",
    "Everyone in the office liked the {colour} {thing} that {name} brought back from {city}.",
)
FUNCTIONS = (
    "adds two numbers", "returns the larger of two numbers", "checks whether a number is even", "reverses a string",
    "counts the vowels in a string", "returns the sum of a list", "returns the square of a number",
    "checks whether a word is a palindrome", "computes the factorial of n", "returns the first n even numbers",
    "converts Celsius to Fahrenheit", "removes duplicates from a list", "returns the longest word in a list",
    "multiplies all numbers in a list", "counts the words in a sentence", "returns the average of a list",
    "checks whether a number is prime", "returns the last element of a list", "joins words with a comma",
    "returns the n-th Fibonacci number", "doubles every number in a list", "capitalises every word",
)  # fmt: skip
LANGUAGES = ("French", "Spanish", "German", "Italian", "Korean")


def sentence(rng: random.Random) -> str:
    """One made-up sentence full of facts."""
    return rng.choice(SENTENCES).format(
        city=rng.choice(CITIES), name=rng.choice(NAMES), thing=rng.choice(THINGS), colour=rng.choice(COLOURS),
        animal=rng.choice(ANIMALS), job=rng.choice(JOBS), day=rng.choice(DAYS), month=rng.choice(MONTHS),
        hour=rng.randint(1, 12), minute=rng.choice((10, 15, 20, 30, 40, 45)), small=rng.randint(2, 12),
        big=rng.randint(13, 400), age=rng.randint(18, 70),
    )  # fmt: skip


def paragraph(rng: random.Random, count: int) -> str:
    """`count` made-up sentences."""
    return " ".join(sentence(rng) for _ in range(count))


def arithmetic(rng: random.Random) -> str:
    """A sum, difference or product."""
    left, right = rng.randint(1, 60), rng.randint(1, 60)
    operator = rng.choice("+++-*")
    ask = (
        "What is {}? Answer with the number only.",
        "Calculate {}.",
        "{} = ?",
        "What is {}?",
        "Compute {} and give only the result.",
    )
    return rng.choice(ask).format(f"{left} {operator} {right}")


def counting(rng: random.Random) -> str:
    """A sequence with one right continuation."""
    first = rng.randint(1, 60)
    last = first + rng.randint(5, 15)
    kind = rng.randrange(4)
    if kind == 0:
        return f"Count from {first} to {last}, separated by commas."
    if kind == 1:
        return f"List the numbers from {first} to {last}."
    if kind == 2:
        return f"Count backwards from {last} to {first}."
    return f"Write the even numbers between {first} and {last + 10}."


def fact(rng: random.Random) -> str:
    """A short question of general knowledge."""
    ask = (
        f"What is the capital of {rng.choice(COUNTRIES)}?",
        f"What is the capital of {rng.choice(COUNTRIES)}? Answer with one word.",
        f"Which country is {rng.choice(CITIES)} in?",
        f"What language do people speak in {rng.choice(COUNTRIES)}?",
        f"What colour is a {rng.choice(('banana', 'lemon', 'strawberry', 'tomato', 'cucumber', 'carrot', 'plum'))}?",
        f"How many legs does a {rng.choice(ANIMALS)} have?",
        f"Which month comes after {rng.choice(MONTHS)}?",
        f"Which day comes before {rng.choice(DAYS)}? Answer with one word.",
        f"Is a {rng.choice(ANIMALS)} a mammal? Answer yes or no.",
        f"What is the opposite of {rng.choice(('hot', 'big', 'fast', 'old', 'light', 'early', 'full', 'happy'))}?",
    )
    return rng.choice(ask)


def extraction(rng: random.Random) -> str:
    """A text and a question about one of its facts."""
    text = paragraph(rng, rng.randint(1, 3))
    ask = (
        "What is the name of the person in this text?",
        "Which city is named in this text? Answer with the city only.",
        "Which numbers are in this text?",
        "Who is mentioned in the text?",
        "When does it happen?",
        "List all names in the text.",
    )
    return f"{text}\n\n{rng.choice(ask)}" if rng.random() < 0.6 else f"Text: {text}\nQuestion: {rng.choice(ask)}"


def as_json(rng: random.Random) -> str:
    """A request for a JSON object of given keys."""
    kind = rng.randrange(4)
    if kind == 0:
        name, age, city = rng.choice(NAMES), rng.randint(18, 70), rng.choice(CITIES)
        return f"{name} is {age} years old and lives in {city}. Write this as JSON with the keys name, age and city."
    if kind == 1:
        thing, colour, price = rng.choice(THINGS), rng.choice(COLOURS), rng.randint(1, 90)
        return (
            f'Give a JSON object with the keys "item", "colour" and "price" for: a {colour} {thing} '
            f"that costs {price} dollars. Output JSON only."
        )
    if kind == 2:
        keys = rng.sample(("id", "title", "year", "author", "pages", "price", "available", "tags"), 3)
        return f"Write a JSON object that describes a book, with the keys {', '.join(keys)}. Output only the JSON."
    value = {"kind": rng.choice(THINGS), "colour": rng.choice(COLOURS), "count": rng.randint(1, 99)}
    return f"Repeat this JSON exactly: {json.dumps(value)}"


def tool_call(rng: random.Random) -> str:
    """A request answered by the call of a tool, as JSON."""
    ask = rng.choice((
        f"What is the weather in {rng.choice(CITIES)}?",
        f"Add {rng.randint(1, 50)} and {rng.randint(1, 50)}.",
        f"Send a message to {rng.choice(NAMES)}.",
        f"Set an alarm for {rng.randint(1, 12)} o'clock.",
    ))  # fmt: skip
    tools = "get_weather(city), add(a, b), send_message(to, text), set_alarm(time)"
    return (
        f"You can call these tools: {tools}. Answer with JSON only, in the form "
        f'{{"tool": "...", "arguments": {{...}}}}.\nRequest: {ask}'
    )


def copying(rng: random.Random) -> str:
    """A text to repeat, or to repeat with one change."""
    text = paragraph(rng, rng.randint(1, 3))
    kind = rng.randrange(5)
    if kind == 0:
        return f"Repeat the following text exactly:\n{text}"
    if kind == 1:
        return f"Copy this sentence word for word: {sentence(rng)}"
    if kind == 2:
        return f'Replace the word "the" with "a" in this text:\n{text}'
    if kind == 3:
        items = [rng.choice(THINGS + ANIMALS) for _ in range(rng.randint(4, 12))]
        return f"Repeat this list: {', '.join(items)}"
    return f"Correct the spelling in this text and write it again:\n{text}"


def listing(rng: random.Random) -> str:
    """A request for a list."""
    ask = (
        f"List {rng.randint(3, 6)} {rng.choice(('fruits', 'animals', 'countries', 'colours', 'sports', 'jobs'))}.",
        f"Name {rng.randint(3, 5)} things you find in a {rng.choice(('kitchen', 'school', 'garden', 'office'))}.",
        f"Give me {rng.randint(3, 5)} tips about {rng.choice(TOPICS)}.",
        f"Sort these words alphabetically: {', '.join(rng.sample(THINGS, 5))}.",
        f"Write the days of the week, starting with {rng.choice(DAYS)}.",
        f"Write the months of the year, starting with {rng.choice(MONTHS)}.",
    )
    return rng.choice(ask)


def translation(rng: random.Random) -> str:
    """A sentence to translate."""
    simple = rng.choice((
        f"The {rng.choice(ANIMALS)} is {rng.choice(COLOURS)}.", f"I have {rng.randint(2, 9)} {rng.choice(THINGS)}s.",
        f"{rng.choice(NAMES)} lives in {rng.choice(CITIES)}.", "Good morning, how are you?", sentence(rng),
    ))  # fmt: skip
    return f"Translate to {rng.choice(LANGUAGES)}: {simple}"


def summary(rng: random.Random) -> str:
    """A paragraph to make shorter."""
    ask = ("Summarise this text in one sentence:", "Summarize:", "Give a short summary of the following text:")
    return f"{rng.choice(ask)}\n{paragraph(rng, rng.randint(3, 6))}"


def reasoning(rng: random.Random) -> str:
    """A word problem."""
    name, other, thing = rng.choice(NAMES), rng.choice(NAMES), rng.choice(THINGS)
    first, second, price = rng.randint(3, 30), rng.randint(2, 12), rng.randint(2, 9)
    ask = rng.choice((
        f"{name} has {first} {thing}s and buys {second} more. How many {thing}s does {name} have now?",
        f"A {thing} costs {price} dollars. How much do {second} {thing}s cost?",
        f"{name} had {first + second} {thing}s and gave {second} to {other}. How many are left?",
        f"{name} reads {price} pages a day. How many pages does {name} read in {second} days?",
    ))  # fmt: skip
    return ask + rng.choice(("", " Think step by step.", " Let's think step by step.", " Answer with the number only."))


def chat(rng: random.Random) -> str:
    """An open question."""
    topic = rng.choice(TOPICS)
    ask = (
        f"Explain {topic} in simple words.",
        f"Why is {topic} important?",
        f"Tell me something about {topic}.",
        f"Write a short paragraph about {topic}.",
        f"What do you know about {topic}?",
        f"How would you explain {topic} to a child?",
        f"Hello! Can you help me with {topic}?",
    )
    return rng.choice(ask)


def story(rng: random.Random) -> str:
    """A request for open prose."""
    ask = (
        f"Write a short story about a {rng.choice(ANIMALS)} and a {rng.choice(THINGS)}.",
        f"Write a short poem about a {rng.choice(COLOURS)} {rng.choice(THINGS)}.",
        f"Continue the story: {sentence(rng)}",
        f"Write an email to {rng.choice(NAMES)} about {rng.choice(TOPICS)}.",
        f"Describe a {rng.choice(COLOURS)} {rng.choice(ANIMALS)} in {rng.choice(CITIES)}.",
    )
    return rng.choice(ask)


def code(rng: random.Random) -> str:
    """A request for a small Python function."""
    what = rng.choice(FUNCTIONS)
    ask = (
        f"Write a Python function that {what}.",
        f"Write a Python function that {what}. Output only the code.",
        f"Write a short Python function which {what}, without explanation.",
    )
    return rng.choice(ask)


def classification(rng: random.Random) -> str:
    """A sentence to sort into a class."""
    praise = rng.choice(("I love this", "What a terrible", "I am very happy with the", "I do not like the", "Great"))
    return (
        f'Is this review positive or negative? Answer with one word.\n"{praise} {rng.choice(THINGS)}"'
        if rng.random() < 0.5
        else f"Is a {rng.choice(ANIMALS + THINGS)} an animal or an object? Answer with one word."
    )


#: Kind of prompt, its maker, and its share of the text.
KINDS: tuple[tuple[str, Callable[[random.Random], str], float], ...] = (
    ("arithmetic", arithmetic, 9),
    ("counting", counting, 6),
    ("fact", fact, 9),
    ("extraction", extraction, 10),
    ("json", as_json, 10),
    ("tool-call", tool_call, 4),
    ("copying", copying, 9),
    ("list", listing, 6),
    ("translation", translation, 5),
    ("summary", summary, 6),
    ("reasoning", reasoning, 9),
    ("chat", chat, 6),
    ("story", story, 4),
    ("code", code, 6),
    ("classification", classification, 3),
)


def templated(message: str) -> str:
    """`message` as SmolLM2's chat template writes a conversation that the assistant is to answer."""
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"


#: What stands where the answer begins, by kind; any other kind has the last.
CUES = {"json": "JSON:", "tool-call": "JSON:", "copying": "Text:", "summary": "Summary:", "code": "Code:"}


def styled(rng: random.Random, kind: str, message: str) -> str:
    """The message as a conversation, with or without a cue for the answer, or with a cue as plain text."""
    cue = CUES.get(kind, "Answer:")
    asked = f"Question: {message}" if cue == "Answer:" and "\n" not in message else message
    choice = rng.random()
    if choice < 0.4:
        return templated(message)
    return templated(f"{asked}\n{cue}") if choice < 0.75 else f"{asked}\n{cue}"


def prompts(seed: int) -> Iterator[tuple[str, str]]:
    """Kind and text of one prompt after another, without end."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible corpus, not a secret
    names, makers, shares = zip(*KINDS, strict=True)
    by_name = dict(zip(names, makers, strict=True))
    while True:
        name = rng.choices(names, shares)[0]
        yield name, styled(rng, name, by_name[name](rng))
