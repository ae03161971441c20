fn main() {
    let sum: u32 = (0..6).map(|_| std::thread::spawn(|| 7)).map(|t| t.join().unwrap()).sum();
    let echoed = std::process::Command::new("echo").arg(sum.to_string()).output().unwrap();
    print!("{}", String::from_utf8_lossy(&echoed.stdout));
    let map: std::collections::HashMap<_, _> = [(1, 2)].into();
    assert_eq!(map[&1], 2);
}
