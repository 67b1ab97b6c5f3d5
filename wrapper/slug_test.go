package wrapper

import (
	"strings"
	"testing"
)

func TestSlug(t *testing.T) {
	long := strings.Repeat("x", maxSlug)
	for _, tc := range []struct{ name, id, want string }{
		{"My Store", "", "my-store"},
		{"Store #1!", "", "store-1"},
		{"a_b__c", "", "a-b-c"},
		{"--a - b--", "", "a-b"},
		{"Ünïcode Läden", "", "n-code-l-den"},
		{"店铺 7", "", "7"},
		{"demo", "any", "demo"},
		{"web-shop", "", "web-shop"},
		{"aux", "", "aux"},
		{"w2", "", "w2"},
		{"deadbeef", "", "deadbeef"},
		{"shop-deadbee", "", "shop-deadbee"},
		{"shop-w2x", "", "shop-w2x"},
		{long, "", long},
		{"店铺", "1a2b3c4d5e6f", "store-1a2b3c4d"},
		{"___", "AB_1", "store-ab-1"},
		{"", "x", "store-x"},
		{"store-1a2b3c4d", "1a2b3c4d5e6f", "store-1a2b3c4d"},
	} {
		if got, err := Slug(tc.name, tc.id); got != tc.want || err != nil {
			t.Errorf("Slug(%q, %q) = %q, %v; want %q", tc.name, tc.id, got, err, tc.want)
		}
	}
}

func TestSlugRefused(t *testing.T) {
	for _, tc := range []struct{ name, id, why string }{
		{"店铺", "", "--id"},
		{"", "", "--id"},
		{"店铺", "--------1", "first 8"},
		{"Web", "", "reserved"},
		{"_web", "", "reserved"},
		{"Shop aux", "", "-aux"},
		{"shop-DEADBEEF", "", "-deadbeef"},
		{"shop 12345678", "", "-12345678"},
		{"shop_w12", "", "-w12"},
		{"store-1a2b3c4d", "1a2b3c4e", "-1a2b3c4d"},
		{strings.Repeat("x", maxSlug+1), "", "too long"},
	} {
		got, err := Slug(tc.name, tc.id)
		if err == nil || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("Slug(%q, %q) = %q, %v; want an error with %q", tc.name, tc.id, got, err, tc.why)
		}
	}
}
