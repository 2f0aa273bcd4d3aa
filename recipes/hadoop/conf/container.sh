# Bash reads this in every container ($BASH_ENV of the NodeManager). A task that ends may leave
# processes behind, and YARN looks for them only if it ended with an error: they end with its shell.
if [ -n "${CONTAINER_ID:-}" ]; then
    # Of all shells in a container that is the first one, the leader of its session.
    read -r _ _ _ _ _ csd_session _ <"/proc/$$/stat"
    # Without another process: there may be no room for one.
    [ "$csd_session" != $$ ] || trap 'csd_code=$?; trap "" TERM; kill -TERM 0; exit "$csd_code"' EXIT
    unset csd_session
fi
