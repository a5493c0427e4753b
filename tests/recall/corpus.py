"""A small labelled set: passages of a phone company's handbook, and questions with the passage that answers each.

Half of the questions share telling words with their passage, the other half are put the way callers put them.
"""

from __future__ import annotations

from voice_agent.recall.entries import Passage

HANDBOOK = """# Internet
## Restarting the router
Unplug the router, wait for thirty seconds and plug it in again. The light turns green after two minutes.
## Meaning of the lights
A red light means that there is no signal on the line. A blinking blue light means that software is being updated.
## Slow connection
Wireless speed drops behind thick walls and next to microwave ovens. Try a cable before you report a fault.
## Guest network
Visitors can be given a network of their own, with its own password, which does not reach your devices.
## Changing the wireless password
The wireless password is changed on the router's page under Security. Every device has to be connected again.
## Parental control
Sites can be blocked by category, and bedtime hours set for each child's device.
## Mesh repeaters
A repeater in the hallway extends coverage to the upper floor. Up to four can be added to one router.
## Static address
Business customers may order a static IP address for five dollars a month.
# Television
## Recording programmes
Up to two programmes can be recorded at the same time. Recordings are kept for ninety days.
## Lost remote control
A replacement remote costs twelve dollars. The telephone app works as a remote in the meantime.
## Subtitles
Captions are switched on with the green key. Size and colour are set in the accessibility menu.
## Sports package
Live football and tennis come with the Arena package for fifteen dollars a month.
## Pixelated picture
Blocks and frozen pictures come from a loose aerial cable in most homes.
## Watching abroad
Streams can be watched in other countries of the union for up to thirty days a year.
# Mobile
## Roaming
Calls and data in neighbouring countries are included. Elsewhere a day pass costs six dollars.
## Lost phone
Report a stolen handset at once: the SIM card is blocked within minutes and nobody can run up charges.
## Keeping your number
When you come from another provider, your number is carried over within one working day.
## Voicemail
Messages are kept for twenty days. The mailbox is switched off by dialling star 88 hash.
## SIM unlock code
After three wrong PIN entries the card is locked. The PUK code stands on the letter that came with it.
## Fifth generation coverage
5G is available in all cities above fifty thousand inhabitants.
## Data used up
When the monthly volume is spent, speed falls to sixty-four kilobits until the next month begins.
## Emergency calls
Emergency numbers can be reached without credit and without a SIM card.
## Family plan
Up to five lines share one allowance. Each further line costs eight dollars.
# Billing
## Reading your bill
The first page shows the sum and the due date. Calls are itemised on the pages behind.
## Late payment
A reminder costs three dollars. After the second one the line is suspended.
## Direct debit
The amount is collected from your bank on the fifth of each month.
## Paper invoices
Printed bills are sent by post for two dollars each; electronic ones are free.
## Refunds
Money that was overpaid is returned to the account it came from within two weeks.
## Payment by instalments
Sums above one hundred dollars can be spread over six months without interest.
## Disputed charges
Objections to a bill must be made in writing within eight weeks.
## Premium numbers
Expensive special numbers can be barred free of charge.
## Change of bank details
A new account number is entered in the customer portal or given by letter.
## Tax receipts
A yearly statement for your tax return is ready each February.
# Contract
## Notice period
A contract is ended with one month's notice. It runs on month by month after the first year.
## Moving house
Tell us four weeks before your move and we take the line to the new address without a fee.
## Right of withdrawal
An order made by telephone can be revoked within fourteen days without giving a reason.
## Death of a customer
Relatives send a copy of the certificate; the contract ends on the day it arrives.
## Handing over a contract
Another person can take over the contract if both sign the form.
## Student discount
Learners under twenty-seven with a valid card pay a third less.
## Senior tariff
From sixty-five years on, calls to the fixed network cost nothing.
## Loyalty bonus
After five years we give one month free of charge each year.
## Pausing a contract
During a stay abroad of three months or more the contract can rest.
## Upgrade
A faster plan starts on the day after it was ordered; a slower one at the end of the term.
# Technicians
## Cost of a visit
A visit is free if the fault is ours. Otherwise it costs sixty dollars.
## What happens at an installation
The engineer lays the cable to the first socket, connects the modem and measures the line. It takes about an hour.
## Rescheduling
An appointment can be moved until noon on the day before.
## Missed appointment
If our technician does not come, you are credited twenty dollars.
## Landlord's consent
Drilling through a wall needs the written permission of the owner of the building.
# Shops
## Opening hours
Shops are open from nine to six on weekdays and from ten to four on Saturday.
## Repairs of handsets
Broken screens are mended within two days; a phone is lent meanwhile.
## Returning equipment
Rented devices are handed in at any shop or sent back with the label in the box.
## Trade-in of old phones
Used telephones are taken in payment for a new one; their worth is judged on the spot.
## Accessible entrance
The shop at the station has a ramp and an induction loop for hearing aids.
# Privacy
## Stored call records
Connection data is deleted after ten weeks. The content of calls is never stored.
## Access to your data
You may ask once a year what is known about you; the answer comes within a month.
## Phone book entry
An entry in the directory is made only if you ask for it.
## Marketing
Advertising by mail or telephone stops as soon as you object.
## Nuisance calls
Threatening calls can be traced by order of the police.
# Outages
## Planned maintenance
Work on the network takes place between one and five at night and is announced a week before.
## Power failure
Without electricity the home telephone does not work; a battery box keeps it alive for four hours.
## Storm damage
Cables brought down by wind must not be touched; report the place and keep away.
## Compensation
If a fault lasts longer than two days, five dollars are credited for each further day.
# Devices
## Warranty
Devices that we sold are guaranteed for two years. Water damage is not covered.
## Instructions in other languages
Manuals in Spanish, Polish and Turkish can be downloaded from the portal.
## Second-hand routers
Used routers of other makers work if they know the standard VDSL 35b.
## Battery swelling
A bulging battery must not be charged any more; bring it to a shop in a metal box.
"""

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("How do I restart the router?", "Restarting the router"),
    ("The box has a red light, what does that mean?", "Meaning of the lights"),
    ("My wifi is crawling in the bedroom", "Slow connection"),
    ("Can friends use my internet without seeing my computers?", "Guest network"),
    ("I want a new wifi password", "Changing the wireless password"),
    ("How do I keep my kids from going online at night?", "Parental control"),
    ("There is no reception upstairs", "Mesh repeaters"),
    ("How much is a static IP address?", "Static address"),
    ("Can I tape two shows at once?", "Recording programmes"),
    ("I can't find my clicker for the TV", "Lost remote control"),
    ("My father is deaf, can he read what they say on TV?", "Subtitles"),
    ("What does it cost to watch live football?", "Sports package"),
    ("The television image keeps freezing into squares", "Pixelated picture"),
    ("Can I watch my channels on holiday in another country?", "Watching abroad"),
    ("What do calls cost in a foreign country?", "Roaming"),
    ("Somebody took my mobile", "Lost phone"),
    ("Will I have the same telephone number if I switch to you?", "Keeping your number"),
    ("How do I turn off the answering machine?", "Voicemail"),
    ("I typed my PIN wrong three times", "SIM unlock code"),
    ("Do you have 5G in my city?", "Fifth generation coverage"),
    ("Why is my phone internet so slow at the end of the month?", "Data used up"),
    ("Can I ring an ambulance with no money on the card?", "Emergency calls"),
    ("My wife and children need lines as well", "Family plan"),
    ("Where on the bill is the due date?", "Reading your bill"),
    ("What happens if I don't pay in time?", "Late payment"),
    ("On which day do you take the money from my bank?", "Direct debit"),
    ("I would like my bills on paper", "Paper invoices"),
    ("I paid twice, do I get my money back?", "Refunds"),
    ("I can't pay all of it at once", "Payment by instalments"),
    ("This invoice is wrong and I want to object", "Disputed charges"),
    ("I have changed banks", "Change of bank details"),
    ("I need a statement for my tax return", "Tax receipts"),
    ("How do I get out of my contract?", "Notice period"),
    ("I am getting a new apartment next month", "Moving house"),
    ("I ordered yesterday and changed my mind", "Right of withdrawal"),
    ("My mother passed away, what about her line?", "Death of a customer"),
    ("Can my flatmate take over my contract?", "Handing over a contract"),
    ("Is it cheaper for people at university?", "Student discount"),
    ("I am seventy, is there something for pensioners?", "Senior tariff"),
    ("I will be away for half a year, must I go on paying?", "Pausing a contract"),
    ("Is the engineer's visit free?", "Cost of a visit"),
    ("Can I move my appointment to another day?", "Rescheduling"),
    ("I waited all day and nobody showed up", "Missed appointment"),
    ("Do I have to ask the owner of the house before you drill?", "Landlord's consent"),
    ("Are you open on Saturday?", "Opening hours"),
    ("The glass of my phone is cracked", "Repairs of handsets"),
    ("How do I send the modem back to you?", "Returning equipment"),
    ("Do you buy used phones?", "Trade-in of old phones"),
    ("I come in a wheelchair, can I get in?", "Accessible entrance"),
    ("What do you know about me?", "Access to your data"),
    ("Please stop calling me with offers", "Marketing"),
    ("Someone keeps threatening me on the phone", "Nuisance calls"),
    ("Does the phone work when the electricity is out?", "Power failure"),
    ("A tree fell on the wire in front of my house", "Storm damage"),
    ("The line has been dead for four days, do I get anything for it?", "Compensation"),
    ("My device fell into the bath, is that covered?", "Warranty"),
    ("Do you have the manual in Spanish?", "Instructions in other languages"),
    ("The back of my phone is bulging", "Battery swelling"),
)


def handbook() -> list[Passage]:
    from voice_agent.recall.chunks import passages

    return passages(HANDBOOK, "handbook.md", "Handbook")
