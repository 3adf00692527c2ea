/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * messages: MESSAGE_ID of the kinds of log lines that an operator may want to match, of the core
 * and of the daemon around it. ballastd(8) has the table: an id never changes, nor does its kind.
 */
#ifndef BALLAST_HV_MESSAGES_H
#define BALLAST_HV_MESSAGES_H

#define MESSAGE_TARGET	      "16c7f53bcdd0425181e595e9963168ef"
#define MESSAGE_ASK_CAME      "a729bc53f7a44d499d672671c283d3ee"
#define MESSAGE_ASK_FAILED    "07552736ee394b3096396d2578e1dddc"
#define MESSAGE_SHORT	      "8d5bcfd435104030b85cc5bf52a05726"
#define MESSAGE_SHORT_OVER    "c60dc7598f3b44adabb9ce6e24868950"
#define MESSAGE_BELOW_MIN     "31e3f77ba37943dc8a9af3aa6a1092a7"
#define MESSAGE_ABOVE_MIN     "902392d6bf8045788a2175fb7f46239d"
#define MESSAGE_WISH	      "e533596393d04ebaa1b0738aff3b4a7f"
#define MESSAGE_CONTENDED     "3615c56549e64a9fb7f42096ae38cfc4"
#define MESSAGE_CONNECTED     "d97e7be1aa9b491cbde097baec24d4e3"
#define MESSAGE_NOT_CONNECTED "39664cc4f1ca4ceea6fe8a4431fd57be"
#define MESSAGE_FOUND	      "8cdeac7653a1454ab770893f84216c47"
#define MESSAGE_GONE	      "ec733076292e4079a354b7942da2f8c2"
#define MESSAGE_NOT_ANSWERING "21a132cc093844c8a0b262bc88e331c3"
#define MESSAGE_ANSWERS	      "2745e888fe5e4b17998f92bdb469a06e"
#define MESSAGE_STATE	      "33b4b796dc5c46c7857ea966630307fe"
#define MESSAGE_PAUSED	      "4de68c2836f0462aba95a3247014abcb"
#define MESSAGE_RESUMED	      "58be1eb9c0d840a4909a225f8a8ccd48"
#define MESSAGE_RELOADED      "2f1f73f9fa4340dc9cb1315127e540ad"
#define MESSAGE_REFUSED	      "f7ed5136e02b4386a86bf8c038e97910"

#endif
