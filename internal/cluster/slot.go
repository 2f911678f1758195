package cluster

import "strings"

// Slots is how many a Redis Cluster has.
const Slots = 16384

// Slot returns the slot of a key or of a shard channel: the CRC16 of its hash tag, or of the whole name where it has
// none. The tag is what stands between the first { and the first } after it, if that is not empty (Redis Cluster
// specification, "Hash tags").
func Slot(name string) uint16 {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			name = tag
		}
	}
	var crc uint16
	for i := range len(name) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^name[i]]
	}
	return crc % Slots
}

// crcs are the CRC16 of each byte, of the variant XMODEM: polynomial 0x1021, begun with 0.
var crcs = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
		table[i] = crc
	}
	return table
}()
