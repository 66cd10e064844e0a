-- Looks alone, by time: what all of them share at a provider's account is counted from their events.
CREATE INDEX event_looking ON event (at) WHERE kind = 'looking';
