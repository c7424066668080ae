//! The hosts of an address, each by itself.

use super::*;

#[test]
fn a_host_by_itself_keeps_all_settings() {
    let rest = "x?user=u&password=p&options=-c%20a=b&application_name=n&sslmode=require&sslnegotiation=direct&\
                connect_timeout=3&tcp_user_timeout=4&keepalives=0&keepalives_idle=5&keepalives_interval=6&\
                keepalives_retries=7&target_session_attrs=read-write&channel_binding=require&load_balance_hosts=random";
    let config = |hosts: &str| format!("postgres://{hosts}/{rest}").parse::<Config>().unwrap();
    let both = hosts(&config("a:1,%2Frun:2"));
    assert!(both == [config("a:1"), config("%2Frun:2")]);
    let lists = |hosts: &str| format!("postgres:///{rest}&{hosts}").parse::<Config>().unwrap();
    let both = hosts(&lists("host=a&host=b&hostaddr=10.0.0.1,10.0.0.2&port=1"));
    assert!(both == ["host=a&hostaddr=10.0.0.1&port=1", "host=b&hostaddr=10.0.0.2&port=1"].map(lists));
    assert!(
        hosts(&lists("hostaddr=10.0.0.1,10.0.0.2")) == ["hostaddr=10.0.0.1", "hostaddr=10.0.0.2"].map(lists)
    );
    assert!(hosts(&lists("hostaddr=10.0.0.1,10.0.0.2&port=1,2,3")).is_empty());
}
