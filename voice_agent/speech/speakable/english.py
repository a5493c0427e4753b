"""American English, as the bundled voice speaks it."""

from __future__ import annotations

from num2words import num2words

from voice_agent.speech.speakable.language import Currency, Language, Words, pair, table, word_list

_MONTHS = word_list("January February March April May June July August September October November December")
_MONTH_NAMES = (
    {name.lower(): number for number, name in enumerate(_MONTHS, 1)}
    | {name: number + 1 for number, name in enumerate(word_list("jan feb mar apr may jun jul aug sep oct nov dec"))}
    | {"sept": 9}
)

_DOLLAR = Currency(("dollar", "dollars"), ("cent", "cents"))
_EURO = Currency(("euro", "euros"), ("cent", "cents"))
_POUND = Currency(("pound", "pounds"), ("penny", "pence"))
_YEN = Currency(("yen", "yen"))
_RUPEE = Currency(("rupee", "rupees"), ("paisa", "paise"))
_FRANC = Currency(("franc", "francs"), ("centime", "centimes"))
_CURRENCIES = {
    "$": _DOLLAR,
    "USD": _DOLLAR,
    "€": _EURO,
    "EUR": _EURO,
    "£": _POUND,
    "GBP": _POUND,
    "¥": _YEN,
    "JPY": _YEN,
    "₹": _RUPEE,
    "INR": _RUPEE,
    "CHF": _FRANC,
    "CAD": Currency(("Canadian dollar", "Canadian dollars"), ("cent", "cents")),
    "AUD": Currency(("Australian dollar", "Australian dollars"), ("cent", "cents")),
}


_UNITS = {
    symbol: pair(names)
    for symbol, names in table("""
    km = kilometer, kilometers; m = meter, meters; cm = centimeter, centimeters;
    mm = millimeter, millimeters; mi = mile, miles; yd = yard, yards; kg = kilogram, kilograms;
    g = gram, grams; mg = milligram, milligrams; lb = pound, pounds; lbs = pound, pounds; oz = ounce, ounces;
    l = liter, liters; L = liter, liters; ml = milliliter, milliliters; mL = milliliter, milliliters;
    gal = gallon, gallons; h = hour, hours; hr = hour, hours; hrs = hour, hours; min = minute, minutes;
    mins = minute, minutes; s = second, seconds; sec = second, seconds; secs = second, seconds;
    ms = millisecond, milliseconds; yr = year, years; yrs = year, years; mo = month, months;
    mos = month, months; KB = kilobyte, kilobytes; kB = kilobyte, kilobytes; MB = megabyte, megabytes;
    GB = gigabyte, gigabytes; TB = terabyte, terabytes; W = watt, watts; kW = kilowatt, kilowatts;
    kWh = kilowatt hour, kilowatt hours; V = volt, volts; A = amp, amps; mAh = milliamp hour, milliamp hours;
    ft = foot, feet; Hz = hertz, hertz; kHz = kilohertz, kilohertz; MHz = megahertz, megahertz;
    GHz = gigahertz, gigahertz; kbps = kilobit per second, kilobits per second;
    Kbps = kilobit per second, kilobits per second; Mbps = megabit per second, megabits per second;
    Mbit/s = megabit per second, megabits per second; Gbps = gigabit per second, gigabits per second;
    dB = decibel, decibels; mph = mile per hour, miles per hour;
    km/h = kilometer per hour, kilometers per hour; °C = degree Celsius, degrees Celsius;
    °F = degree Fahrenheit, degrees Fahrenheit; ° = degree, degrees; m² = square meter, square meters;
    km² = square kilometer, square kilometers; sq ft = square foot, square feet;
    sqft = square foot, square feet
    """).items()
}
_PER = table("""
    month = month; mo = month; year = year; yr = year; week = week; wk = week; day = day; night = night;
    hour = hour; hr = hour; minute = minute; min = minute; second = second; user = user; person = person;
    line = line; call = call; item = item; device = device
    """)
_MAGNITUDES = table("""
    k = thousand; K = thousand; M = million; bn = billion; B = billion; mn = million; thousand = thousand;
    million = million; billion = billion; trillion = trillion
    """)
_ABBREVIATIONS = table("""
    mr. = Mister; mrs. = Missus; ms. = Miz; prof. = Professor; rev. = Reverend; gen. = General;
    capt. = Captain; lt. = Lieutenant; sgt. = Sergeant; sen. = Senator; gov. = Governor; jr. = Junior;
    sr. = Senior; e.g. = for example; i.e. = that is; etc. = et cetera; vs. = versus;
    approx. = approximately; cf. = compare; esp. = especially; incl. = including; dept. = department;
    est. = established; inc. = Incorporated; ltd. = Limited; co. = Company; corp. = Corporation;
    bros. = Brothers; ave. = Avenue; rd. = Road; blvd. = Boulevard; apt. = apartment; mt. = Mount;
    ste. = suite; hrs. = hours; mins. = minutes; tel. = telephone; ph.d. = P-H-D; mon. = Monday;
    tue. = Tuesday; tues. = Tuesday; thu. = Thursday; thurs. = Thursday; fri. = Friday; jan. = January;
    feb. = February; aug. = August; sept. = September; oct. = October; nov. = November; dec. = December;
    u.s. = U-S; u.s.a. = U-S-A; u.k. = U-K; e.u. = E-U; u.n. = U-N; d.c. = D-C; p.o. = P-O;
    a.k.a. = also known as; a.s.a.p. = as soon as possible; w/ = with; w/o = without; b/c = because;
    q&a = Q and A; faq = F-A-Q; faqs = F-A-Qs; asap = as soon as possible; vs = versus; and/or = and or;
    n/a = not applicable; a/c = A-C; wi-fi = wifi; p.s. = P-S; r.s.v.p. = R-S-V-P; am/pm = A-M or P-M
    """)
_SYMBOLS = table("""
    & = and; @ = at; + = plus; % = percent; § = section; ° = degrees; ≈ = about; ~ = about; ≤ = at most;
    ≥ = at least; < = less than; > = more than; ± = plus or minus; × = times; ÷ = divided by; $ = dollars;
    € = euros; £ = pounds
    """) | {"=": "equals"}
_FRACTIONS = {
    (1, 2): ("one half", "a half"),
    (1, 3): ("one third", "a third"),
    (2, 3): ("two thirds", "two thirds"),
    (1, 4): ("one quarter", "a quarter"),
    (3, 4): ("three quarters", "three quarters"),
    (1, 8): ("one eighth", "an eighth"),
    (3, 8): ("three eighths", "three eighths"),
}
_WORDS = Words(
    to="to",
    conjunction="and",
    point="point",
    minus="minus",
    plus="plus",
    percent="percent",
    per="per",
    by="by",
    times="times",
    out_of="out of",
    foot="foot",
    number="number",
    version="version",
    at="at",
    dot="dot",
    slash="slash",
    underscore="underscore",
    hyphen="dash",
    slashed="or",
    seconds="seconds",
    day_article="the",
    day_of="of",
)


def _cardinal(value: int) -> str:
    # The comma would be a pause, and an American voice says no "and" inside a number.
    return str(num2words(value)).replace(",", "").replace(" and ", " ")


def _ordinal(value: int) -> str:
    return str(num2words(value, to="ordinal")).replace(",", "").replace(" and ", " ")


def _year(value: int) -> str:
    return str(num2words(value, to="year")).replace(" and ", " ")


def _decade(value: int) -> str:
    tens = _cardinal(value % 100).removesuffix("y") + "ies"
    return f"{_cardinal(value // 100)} {tens}" if value >= 100 else tens


def _clock(hour: int, minute: int, half: str) -> str:
    if not half and (hour > 12 or hour == 0):
        half = "pm" if 12 <= hour < 24 else "am"
    spoken = _cardinal(hour % 12 or 12)
    if minute:
        spoken += f" oh {_cardinal(minute)}" if minute < 10 else f" {_cardinal(minute)}"
    elif not half:
        spoken += " o'clock"
    # Hyphens keep "A" a letter: alone it would be read as the article.
    return spoken + {"am": " A-M", "pm": " P-M", "": ""}[half]


_YEAR_CONTEXTS = word_list(
    "in since by from until till year of © before after during early late mid around circa for spring summer autumn"
    " fall winter q1 q2 q3 q4"
)
_STRONG_CODE_CONTEXTS = word_list(
    "code pin passcode password otp zip zip_code postcode extension ext ext. ending_in ends_in ending_with digits"
    " flight room number_is id area_code"
)
_CODE_CONTEXTS = word_list(
    "account reference confirmation tracking ticket case order invoice card member membership customer policy serial"
    " routing passport license booking reservation number numbers claim contract phone sim imei"
)

ENGLISH = Language(
    decimal=".",
    thousands=",",
    digits=word_list("zero one two three four five six seven eight nine"),
    month_first=True,
    months=_MONTHS,
    month_names=_MONTH_NAMES,
    currencies=_CURRENCIES,
    cents=("cent", "cents"),
    units=_UNITS,
    per=_PER,
    magnitudes=_MAGNITUDES,
    abbreviations=_ABBREVIATIONS,
    before_digit=table(
        """
        no. = number; nos. = numbers; ext. = extension; pp. = pages; p. = page; fig. = figure; ch. = chapter;
        wed. = Wednesday; sat. = Saturday; sun. = Sunday; mar. = March
        """
    ),
    ambiguous={"dr.": ("Doctor", "Drive"), "st.": ("Saint", "Street")},
    symbols=_SYMBOLS,
    phrases={
        **dict.fromkeys(("mon-fri", "mon–fri", "mon - fri", "mon – fri"), "Monday to Friday"),
        **dict.fromkeys(("sat-sun", "sat–sun", "sat & sun"), "Saturday and Sunday"),
        "24/7": "twenty-four seven",
        "9/11": "nine eleven",
        "50/50": "fifty fifty",
        "911": "nine one one",
    },
    fractions=_FRACTIONS,
    words=_WORDS,
    cardinal=_cardinal,
    ordinal=_ordinal,
    ordinal_suffixes="st|nd|rd|th",
    year=_year,
    decade=_decade,
    day_of_month=_ordinal,
    clock=_clock,
    date_contexts=frozenset(word_list("on by until till since before after from due date dated")),
    phone_contexts=frozenset(
        word_list("call calling phone telephone tel dial cell mobile fax text sms hotline line reach")
    ),
    year_contexts=frozenset(_YEAR_CONTEXTS),
    code_contexts=frozenset(_CODE_CONTEXTS + _STRONG_CODE_CONTEXTS),
    strong_code_contexts=frozenset(_STRONG_CODE_CONTEXTS),
    code_linkers=frozenset(word_list("number code id no. no is ending in ends with")),
)
