"""What looks secret and what does not: names of fields, and texts. All secrets here are made up."""

from __future__ import annotations

from base64 import b64encode

from fairlane.model.payload.sensitive import LARGE_TEXT, MARKER

SECRET_NAMES = """
password Password PASSWORD user_password userPassword user-password db.password password1 password2 passwords
new_password passwordHash password_reset_token dbpassword MYSQL_PWD passwd pwd passphrase pass secret
client_secret clientSecret CLIENTSECRET aws_secret_access_key secrets token accessToken refresh_token id_token
csrftoken tokens api_key apiKey APIKey X-Api-Key apikey API_KEYS access_key private_key privateKey
ssh_private_key signing_key encryptionKey authorization Authorization proxy-authorization auth basic_auth
credential credentials db_credentials cookie Set-Cookie cookies session_id sessionId JSESSIONID session_key
card_number cardNumber creditCard credit_card_number cvv cvc CVV2 card_pin ssn social_security_number iban
IBAN account_number bank_account passport_number otp totp_code verification_code recovery_codes jwt jwt_secret
bearer_token webhook_key license_key email_body mailBody html_body body_html document_content file_contents
attachment_data key keys
""".split()  # noqa: SIM905 (a table of words reads best as one)

PLAIN_NAMES = """
token_count tokenCount max_tokens maxTokens total_tokens num_tokens n_tokens number_of_tokens token_limit
tokens_used tokens_per_second token_type token_bucket token_expires_at token_price token_id tokenizer tokenize
tokenizer_name keyboard monkey turkey hockey donkey sort_key sortKey primary_key foreign_key
cache_key partition_key idempotency_key dedup_key object_key s3_key public_key ssh_public_key routing_key
key_id secretary secretariat secret_name author authors authority authorized_by authenticated oauth_provider
password_changed_at password_policy password_length has_password is_password_set forgot_password
requires_password credential_id credentials_provider cookie_consent cookie_policy private_key_path
api_key_id session session_count session_idle_seconds discard_numbers card_type credit_card_limit
credit_card_last4 card_number_masked account account_id accounts cardinality pinned pin_color spin compass
passenger bypass passage encompass passes ibanez cvs body text html content document message email
authorization_url verified passed pwned
""".split()  # noqa: SIM905 (as above)

_B64 = b64encode(b"ada:hunter2").decode()
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END {0}PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".SflKxwRJSMeKKF2QT4fw"
_HEX32 = "0123456789abcdef" * 2
MIXED = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3jK5mN7p"

# Put together here, so that no tool takes this file for a leak.
SECRET_TEXTS = {
    PEM.format(""): "private key",
    PEM.format("RSA "): "private key",
    PEM.format("EC "): "private key",
    PEM.format("OPENSSH "): "private key",
    PEM.format("ENCRYPTED "): "private key",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ": "private key",
    "here it is:\n" + PEM.format("") + "\nbye": "private key",
    JWT: "signed token",
    f"got {JWT} from them": "signed token",
    f"Bearer {MIXED}": "bearer header",
    "bearer abcdefgh1234": "bearer header",
    "BEARER abcdEFGHijkl": "bearer header",
    f"Basic {_B64}": "basic header",
    f"basic {_B64}": "basic header",
    "AK" + "IA" + "ABCDEFGHIJKLMNOP": "key of a known provider",
    "AS" + "IA" + "ABCDEFGHIJKLMNO2": "key of a known provider",
    "AI" + "za" + MIXED[:35]: "key of a known provider",
    "ya" + "29." + MIXED: "key of a known provider",
    "gh" + "p_" + MIXED[:36]: "key of a known provider",
    "github" + "_pat_" + MIXED: "key of a known provider",
    "gl" + "pat-" + MIXED[:20]: "key of a known provider",
    "xo" + "xb-1234567890-" + MIXED[:12]: "key of a known provider",
    "xa" + "pp-1-" + MIXED: "key of a known provider",
    "sk_" + "live_" + MIXED[:24]: "key of a known provider",
    "rk_" + "test_" + MIXED[:24]: "key of a known provider",
    "wh" + "sec_" + MIXED: "key of a known provider",
    "sk-" + "ant-" + MIXED: "key of a known provider",
    "SG" + "." + MIXED[:22] + "." + MIXED: "key of a known provider",
    "S" + "K" + _HEX32: "key of a known provider",
    "ke" + "y-" + _HEX32: "key of a known provider",
    "dop" + "_v1_" + _HEX32 * 2: "key of a known provider",
    "hv" + "s." + MIXED: "key of a known provider",
    "shp" + "at_" + _HEX32: "key of a known provider",
    "h" + "f_" + MIXED: "key of a known provider",
    "sq0" + "atp-" + MIXED[:22]: "key of a known provider",
    "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2: "key of a known provider",
    "123456789" + ":AA" + MIXED[:33]: "key of a known provider",
    "4111111111111111": "card number",
    "4111 1111 1111 1111": "card number",
    "5500-0000-0000-0004": "card number",
    "3400 000000 00009": "card number",
    "6011000000000004": "card number",
    "card 4012888888881881, exp 12/30": "card number",
    "postgres://app:hunter2@db/app": "password in a URL",
    "redis://:s3cret@cache:6379/0": "password in a URL",
    "https://ada:p@ss@example.org/x": "password in a URL",
    "password=hunter2": "'password' in text",
    "user=ada;PASSWORD=hunter2;": "'password' in text",
    "Your password: hunter2": "'password' in text",
    '{"password": "hunter two"}': "'password' in text",
    "{'apiKey': 'hunter2'}": "'api key' in text",
    r"{\"client_secret\": \"hunter two\"}": "'secret' in text",
    "https://example.org/reset?token=hunter2&x=1": "'token' in text",
    "Server=db;AccountKey=hunter2==": "'account key' in text",
    "mysql --password hunter2": "'password' in text",
    "export DB_PASSWD='hunter2'": "'passwd' in text",
    "Authorization: Digest username=ada": "'authorization' in text",
    "Cookie: sid=hunter2; theme=dark": "'cookie' in text",
    "user[password]=hunter2": "'password' in text",
    "<password>hunter2</password>": "'password' in text",
    ":password => 'hunter2'": "'password' in text",
    "token: token: hunter2": "'token' in text",
    "x" * (LARGE_TEXT + 1): "large text, likely content",
    "Dear Ada, " * 300: "large text, likely content",
}

PLAIN_TEXTS = [
    "",
    "hello",
    "ada@example.org",
    "Please reset your password",
    "Forgot your password? Click here.",
    "password: required",
    '{"password": null}',
    "password=***",
    f"password={MARKER}",
    "token: invalid",
    "The token has expired: ask for a new one",
    "max_tokens=1500",
    "token_count: 12",
    "tokens: 1500",
    "token = 3.5",
    "sort_key=name",
    "primary_key: id",
    "secretary: Bob",
    "author: Ada",
    "note: see the secret garden",
    "basic understanding",
    "Basic functionality is there",
    "Basic QWxhZGRpbg==",
    "bearer certificates and bonds",
    "the bearer responsibilities",
    "Bearer",
    "https://example.org/path?x=1&y=2",
    "https://example.org:8080/a@b",
    "postgres://db:5432/app",
    "postgres://app@db/app",
    f"postgres://app:{MARKER}@db/app",
    "mailto:ada@example.org",
    "4111111111111112",
    "1234567890123456",
    "1700000000000000",
    "0000000000000000",
    "id-5105105105105100",
    "5105105105105100.5",
    "4111 1111 1111",
    "55000000000000000004",
    "0198c8e4-5b7e-7000-8000-0123456789ab",
    "2026-07-01T10:00:00Z",
    "+49 30 123456789012",
    "DE89 is a prefix",
    "eyJ is how they begin",
    "eyJhbGciOiJIUzI1NiJ9",
    "AKIA is a prefix",
    "AKIAABCDEFGHIJKLMNOPQ1x"[:19],
    "sk-short",
    "task-force-of-the-century-committee",
    "risk-assessment-for-everything",
    "ghp_short",
    "hf_transformers",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "a: b: c: d",
    "key=value",
    "s3://bucket/key",
    "--token-count 5",
    "--verbose --dry-run",
    "pass: 3, fail: 0",
    "x" * LARGE_TEXT,
    "Grüße aus 世界",
    "\x00\x01\x02",
]
