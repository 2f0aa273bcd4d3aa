# Who may connect: hosts that prove that they know a secret, to drives that prove the same.

check authentication 60
check authentication_sha512 60
check authentication_without_group 60

# In-band authentication with the drive $1, whose settings are a port, an NQN and two secrets; the
# kernel must say that it used hash $2 and group $3.
authenticated() {
    # Debian builds it into its later kernels only; the earlier one takes the option and refuses.
    case $(uname -r) in 6.1.*) skip "this kernel was built without in-band authentication" ;; esac
    grep -q dhchap_secret /dev/nvme-fabrics
    local settings=AUTH_$1 host_secret drive_secret other
    read -r PORT NQN host_secret drive_secret <<< "${!settings}"
    expect_kernel 'nvme'
    dmesg --clear
    local refusal='failed|could not|denied|refused|rejected|error'
    other=$(nvme gen-dhchap-key --hmac=1 --nqn="$HOST_NQN")
    refused "$refusal" dial -i 1
    refused "$refusal" dial -i 1 --dhchap-secret="$other"
    dmesg | grep 'authenticated with' && fail "and yet it was authenticated"
    # The drive takes this host, but cannot prove itself.
    refused "$refusal" dial -i 1 --dhchap-secret="$host_secret" --dhchap-ctrl-secret="$other"
    dmesg | grep 'controller authentication failed'
    ! controller
    dmesg --clear
    connect -i 2 --dhchap-secret="$host_secret"
    dmesg | grep "authenticated with hash hmac($2) dhgroup $3"
    write_and_compare 0 2
    disconnect
    connect -i 2 --dhchap-secret="$host_secret" --dhchap-ctrl-secret="$drive_secret" -g -G
    dmesg | grep 'qid 0: controller authenticated'
    compare 0 2
    nvme reset "$(admin)"
    within 30 controller
    compare 0 2
    disconnect
}

authentication() { authenticated secret sha256 ffdhe3072; }
authentication_sha512() { authenticated sha512 sha512 ffdhe4096; }
authentication_without_group() { authenticated sha384 sha384 null; }
