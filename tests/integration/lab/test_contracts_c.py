"""Surprises of mail, chat, publishing, code and clouds: where a repeat is not safe, or a status lies."""

from __future__ import annotations

import msgspec
import pytest
from tests.integration.lab.playing import of, outcomes, played, unsafe

from counterfoil import contracts
from counterfoil.lab.behaviour import model
from counterfoil.lab.catalogue.weaken import weakened

TOGETHER = "every clause of protection and repeat"


def otherwise(name, **changed):
    """A provider whose behaviour is another than the facts have it."""
    return msgspec.structs.replace(model.load(name), **changed)


def answering(name, body):
    """A provider that answers a write with another body, whatever it does."""
    answers = model.load(name).answers
    done = msgspec.structs.replace(answers.done, body=body)
    return otherwise(name, answers=msgspec.structs.replace(answers, done=done))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("discord.create_message", "key_expiry"),  # A2: the past few minutes
        ("upstash.qstash_publish", "key_expiry"),  # ten minutes
        ("brevo.emails_send", "key_expiry"),  # a quarter of an hour, or half of one: two pages differ
        ("onesignal.notifications_create", "key_expiry"),  # thirty days
        ("aws.stepfunctions.start_execution", "key_expiry"),  # 90 days after its end the name is free
        ("forem.articles_create", "ended"),  # E20: an article that is taken back frees its canonical_url
        ("google_chat.messages_create", "ended"),  # what a deleted message's name is worth is not said
        ("x.tweets_create", "lost_response"),  # nobody says how long a text is remembered
        ("wordpress.posts_create", "lost_response"),  # the slug that is taken becomes SLUG-2
        ("ghost.posts_create", "lost_response"),  # there as well
        ("gitea.releases_create", "ended"),  # a release that is deleted frees its tag
        (
            "npm.publish",
            "concurrent_duplicate",
        ),  # a version is spent for good, but beside the first nothing is promised
        ("github.issues_create", "lost_response"),
        ("digitalocean.droplets.create", "lost_response"),
        ("digitalocean.inference.batches_create", "lost_response"),  # nor how long this one's key is kept
        ("notion.pages_create", "lost_response"),  # its own guide says so
        ("openai.batches.create", "lost_response"),  # E18: the client's key is never sent
        ("anthropic.messages.batches_create", "lost_response"),  # E18
        ("airtable.upsert", "lost_response"),  # E22: it overwrites what was written since
        ("postmark.email_send", "lost_response"),
        ("mailgun.messages_send", "lost_response"),
        ("gmail.messages_send", "lost_response"),
        ("twilio.messages_create", "lost_response"),
    ],
)
def test_a_naive_repeat_doubles_it_and_ours_does_not(name, scenario):
    """Whoever repeats because a key, or a hope, is there makes a second one; the contract knows better."""
    assert unsafe(played(name, scenario, naive(name))) & {"second_effect", "replay_after_retention"}
    assert unsafe(played(name, scenario)) == set()


def naive(name):
    """Every clause of the key that is too bold at once, or the one there is."""
    clauses = [weak.clause for weak in weakened(contracts.load(name))]
    return TOGETHER if TOGETHER in clauses else "protection.retention_seconds"


@pytest.mark.parametrize(
    "name",
    [
        "discord.create_message",  # E21: a nonce does nothing without enforce_nonce
        "aws.stepfunctions.start_execution",  # an EXPRESS name can be used again at once
        "forem.articles_create",  # E20: a draft's canonical_url is not looked at, and a slug never met its repeat
    ],
)
def test_a_key_that_was_not_switched_on_protects_nothing_and_ours_repeats_nothing(name):
    """What the payload or the other side has to switch on is not taken for granted."""
    off = otherwise(name, key=model.Key())
    assert "second_effect" in unsafe(played(name, "lost_response", naive(name), off))
    assert unsafe(played(name, "lost_response", behaviour=off)) == set()


# -- B: the replayed answer misleads -----------------------------------------------------------------------------------


def test_b7_google_chat_echoes_the_new_request():
    """Its answer holds the text that was asked for, whatever stands there: so the key is the ledger's own alone."""
    contract, behaviour = contracts.load("google_chat.messages_create"), model.load("google_chat.messages_create")
    assert contract.answers[0].match == {}  # the text would agree even where the message says something else
    assert contract.request.query == {"messageId": "client-{provider_uuid}", "requestId": "{provider_uuid}"}
    callers = msgspec.structs.replace(
        contract,
        request=msgspec.structs.replace(contract.request, query={"messageId": "client-{payload/text}"}),
        answers=(msgspec.structs.replace(contract.answers[0], match={"/text": "/text"}),),
    )
    same = msgspec.structs.replace(behaviour.played, differs={"/thread": {"name": "another"}})
    assert "mismatch_told_as_success" in unsafe(
        of(callers, msgspec.structs.replace(behaviour, played=same), "mismatch")
    )
    results = played("google_chat.messages_create", "foreign_object")  # only a look at the message is a witness
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown"})


def test_b7_discord_answers_with_an_earlier_message():
    """Under a nonce that was used the new text is dropped without a word: what comes back is compared."""
    name = "discord.create_message"
    assert "mismatch_told_as_success" in unsafe(played(name, "mismatch", "answers[0].match /content"))
    results = played(name, "mismatch")
    assert unsafe(results) == set()
    assert any(result.run.stood[-1].contradicted for result in results)


# -- C: an error that means success ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "forem.articles_create",
        "x.tweets_create",
        "aws.stepfunctions.start_execution",
        "gitea.releases_create",
        "npm.publish",
        "brevo.emails_send",
    ],
)
def test_c9_an_error_that_means_that_somebodys_first_landed(name):
    """Read as a rejection it denies what happened; read as success it may be somebody else's."""
    landed = [index for index, rule in enumerate(contracts.load(name).answers) if rule.means == "first_landed"]
    assert len(landed) == 1
    assert "false_rejection" in unsafe(played(name, "concurrent_duplicate", f"answers[{landed[0]}].finding"))
    assert unsafe(played(name, "concurrent_duplicate")) == set()
    assert unsafe(played(name, "mismatch")) == set()


@pytest.mark.parametrize(
    "name",
    [
        "digitalocean.droplets.create",  # 202 says neither that it is made nor that it is not
        "postmark.email_send",
        "mailgun.messages_send",
        "gmail.messages_send",
        "twilio.messages_create",
        "brevo.emails_send",
        "upstash.qstash_publish",
    ],
)
def test_c14_what_is_taken_in_is_not_told_as_done(name):
    """It may fail, bounce or never come to be: that it was taken in is all that is told as done."""
    assert "false_success" in unsafe(played(name, "other_state", "answers[0].finding"))
    results = played(name, "other_state")
    assert unsafe(results) == set()
    told = {effect for result in results for effect in result.run.effects.values()}
    assert all(effect.startswith("accepted by ") for effect in told - {""})


def test_c14_a_200_of_onesignal_may_say_that_nothing_was_made():
    """An empty id denies the notification, and only that."""
    name = "onesignal.notifications_create"
    assert "rejected" in outcomes(played(name, "refused"))
    assert "false_rejection" in unsafe(played(name, "answered", "answers[0].where /id"))
    assert unsafe(played(name, "refused")) == set()


def test_a_202_of_qstash_says_that_this_message_was_dropped():
    """It is no success of this one: an earlier one under the id is there, ours or not."""
    name = "upstash.qstash_publish"
    results = played(name, "mismatch")
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown"})


def test_an_error_of_wordpress_may_come_after_the_insert():
    """Its terms or its meta failed, and the post stands: an error proves nothing, and the post is found by its slug."""
    results = played("wordpress.posts_create", "replayed_error")
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown", "succeeded"})


@pytest.mark.parametrize(
    ("name", "renamed"),
    [
        ("wordpress.posts_create", {"slug": "order-7-2"}),
        ("ghost.posts_create", {"posts": [{"id": "$id", "slug": "order-7-2", "status": "published"}]}),
    ],
)
def test_a_second_post_gets_another_slug(name, renamed):
    """Answered with SLUG-2 it is the post that was asked for: nothing is told of the one that had the slug."""
    body = model.load(name).answers.done.body | renamed
    assert outcomes(played(name, "answered", behaviour=answering(name, body))) == {"succeeded"}
    results = played(name, "foreign_object")
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown"})


def test_github_drops_a_label_without_a_word():
    """The issue is there and carries nothing of ours: it is not found, and is not told absent."""
    name = "github.issues_create"
    behaviour = model.load(name)
    (look,) = behaviour.looks
    bare = msgspec.structs.replace(look, by={}, item=look.item | {"labels": []})
    dropped = msgspec.structs.replace(behaviour, looks=(bare,))
    assert outcomes(played(name, "answered", behaviour=dropped)) == {"succeeded"}
    results = played(name, "lost_response", behaviour=dropped)
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown"})


def test_postmark_may_not_heed_a_filter():
    """A total of more mails than one page may say is no answer to what was asked."""
    name = "postmark.email_send"
    behaviour = model.load(name)
    (look,) = behaviour.looks
    found = msgspec.structs.replace(look.found, body=look.found.body | {"TotalCount": 5000})
    everything = msgspec.structs.replace(behaviour, looks=(msgspec.structs.replace(look, found=found),))
    assert outcomes(played(name, "lost_response")) == {"succeeded"}
    results = played(name, "lost_response", behaviour=everything)
    assert (unsafe(results), outcomes(results)) == (set(), {"unknown"})


# -- E: protection that is not there -----------------------------------------------------------------------------------


def test_e22_an_upsert_overwrites_without_a_word():
    """Of somebody else's record under the merge field nothing is left: so that field is the ledger's own key alone."""
    contract = contracts.load("airtable.upsert")
    assert contract.request.put == {contract.protection.carrier.removeprefix("body:"): "{provider_key}"}
    assert contract.repeat.other_payload == "overwrites"
    results = played("airtable.upsert", "mismatch")
    assert (unsafe(results), outcomes(results)) == (set(), {"succeeded"})
