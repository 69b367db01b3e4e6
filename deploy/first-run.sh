#!/bin/sh
# Makes the server's configuration if there is none yet: one key, which is shown here and kept nowhere.
#
# It may run before every start. CONTEXTURE_CONFIG names the file, CONTEXTURE_OWNER whose conversations the key opens.
set -eu

config=${CONTEXTURE_CONFIG:?names the configuration to be made}
if [ -e "$config" ]; then
  echo "$config is there; its keys stay as they are" >&2
  exit 0
fi
umask 077
# Made whole or not at all: a file that was cut off would be taken for a configuration the next time.
contexture keys new --name first > "$config.new"
mv "$config.new" "$config"
cat >&2 <<END

$config now has the hash of this key. With KEY in its place, this makes the first conversation:

  curl -H 'x-contexture-key: KEY' -H 'content-type: application/json' \\
    -d '{"id":"first"}' http://127.0.0.1:8484/api/v1/conversations

Clients of OpenAI, Anthropic or Gemini take http://127.0.0.1:8484 as their base URL and send the key in the same header,
beside their own. \`contexture keys new\` makes more keys.
END
