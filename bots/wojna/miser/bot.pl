#!/usr/bin/perl
# Miser, a bot for wojna: weighs what a call costs against what is in the pot.
#
# It stays in while the cards it would have to add are worth it: the better its card, the larger a
# share of its pile it puts at risk. It raises only when it holds the highest card there is and
# can afford it, and ignores which bots are left in the auction.
use strict;
use warnings;

$| = 1;

my $seat = 1;         # our seat
my @deck = (1);       # all cards of the deal, in ascending order
my $card = 1;         # our peeked card
my $shown = 0;        # whether `topcard` now names shown cards
my @pile;             # cards in each pile, by seat
my @added;            # cards added in this auction, by seat
my $pot = 0;

# The share of the deck that is lower than our card.
sub strength {
    my $lower = grep { $_ < $card } @deck;
    return $lower / @deck;
}

# The cards that a call would cost: as many as the greatest contribution is ahead of ours.
sub cost {
    my $most = 0;
    for my $count (@added) { $most = $count if defined $count && $count > $most; }
    my $due = $most - ($added[$seat] // 0);
    return $due < $pile[$seat] ? $due : $pile[$seat];
}

sub choose {
    my $cost = cost();
    my $strength = strength();
    return "raise 1" if $cost == 0 && $strength >= 12 / 13 && $pile[$seat] >= 4;
    return "check" if $cost == 0;
    # What is risked, of all we have, against what may be won.
    my $price = $cost / ($cost + $pot);
    my $share = $cost / ($pile[$seat] || 1);
    return $strength > 0.45 + $price / 2 && $share < $strength ? "check" : "pass";
}

# Records a move of any seat, ours too.
sub follow {
    my ($who, $move, $more) = @_;
    return if $move eq "pass";
    my $most = 0;
    for my $count (@added) { $most = $count if defined $count && $count > $most; }
    my $due = $most + ($move eq "raise" ? $more : 0) - ($added[$who] // 0);
    $due = $pile[$who] if $due > $pile[$who];
    $added[$who] += $due;
    $pile[$who] -= $due;
    $pot += $due;
}

while (my $line = <STDIN>) {
    my ($command, @words) = split ' ', $line;
    next unless defined $command;
    my $reply = "=";
    if ($command eq "your_number") { $seat = $words[0]; }
    elsif ($command eq "setdeck") { @deck = @words[1 .. $#words]; }
    elsif ($command eq "setstate") {
        ($pot, my $seats, @pile) = @words;
        unshift @pile, 0;
        @added = (0) x ($seats + 1);
        $shown = 0;
    }
    elsif ($command eq "topcard") { $card = $words[1] unless $shown; }
    elsif ($command eq "play") { $shown = 1; follow(@words); }
    elsif ($command eq "genmove") { $reply = "= " . choose(); }
    print "$reply\n\n";
    last if $command eq "quit";
}
