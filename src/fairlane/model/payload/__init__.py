"""Arguments and results as JSON bytes: encoding, decoding, versions, secrets."""
