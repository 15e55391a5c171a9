// The vocabulary of the generated reviews. In a template, @ is a slot for quality words, and |
// separates alternatives.
#pragma once

#include <array>
#include <string_view>

namespace aimle::experiments::l2x {

/// [aspect][level]: words that describe how good the aspect is; each occurs once.
inline constexpr std::array<std::array<std::string_view, 5>, 4> kQualityWords{{
    {"murky swampy sludgy muddy headless drab dishwater lifeless",
     "dull faded patchy pallid washed-out dingy bubbly-thin tired-looking",
     "amber copper hazy cloudy straw-colored opaque brownish reddish",
     "bright clear golden frothy polished lively laced handsome",
     "gorgeous brilliant radiant luminous jewel-like stunning sparkling majestic"},
    {"skunky rancid cardboard sulfuric musty putrid stale rotten",
     "faint muted vinegary vegetal corny metallic dusty damp",
     "grainy bready mild earthy grassy yeasty toasted leafy",
     "floral citrusy fragrant piney spicy fruity honeyed herbal",
     "intoxicating heavenly perfumed mesmerizing ambrosial enticing divine captivating"},
    {"watery slimy chalky harsh astringent gritty greasy seltzer-like",
     "thin flat prickly sticky fizzy hollow raspy slick",
     "medium moderate light-bodied drying chewy standard even carbonated",
     "smooth creamy rounded full soft coating refreshing supple",
     "velvety silky luscious pillowy luxurious plush seamless sublime"},
    {"undrinkable foul acrid nauseating soapy sewage-like vile horrid",
     "bland insipid cloying medicinal unbalanced sugary tinny lackluster",
     "malty hoppy biscuity nutty bittersweet plain decent caramel",
     "tasty flavorful rich juicy delicious satisfying chocolatey roasty",
     "exquisite incredible masterful phenomenal transcendent perfect extraordinary flawless"},
}};

/// [aspect]: sentences with slots.
inline constexpr std::array<std::string_view, 4> kAspectSentences{
    "pours a @ color with a @ head .|in the glass it looks @ with @ edges .|the body is @ and the "
    "foam is @ .|a @ beer to look at , topped by @ bubbles .|under the light it is @ , at the rim "
    "@ .",
    "the nose is @ with @ notes .|smells @ and then a bit @ .|on the first whiff it is @ , later "
    "@ .|a @ aroma rises , behind it something @ .|i get @ scents and @ hints .",
    "the mouthfeel is @ with a @ finish .|it feels @ on the tongue and @ at the end .|a @ body "
    "and @ carbonation .|going down it is @ , afterwards @ .|@ at first , then rather @ .",
    "the taste is @ and @ .|up front it is @ , in the middle @ .|flavors are @ with @ undertones "
    ".|a @ sip followed by @ ones .|it drinks @ from start to @ end ."};

/// [aspect]: sentences for words that do not tell the aspect. The first noun after a slot does.
inline constexpr std::array<std::string_view, 4> kSharedSentences{
    "a @ color and a @ head .|@ foam and @ lacing .|a @ hue , at the rim a @ glow .|with @ edges "
    "and @ clarity .",
    "a @ nose and a @ scent .|@ fumes and @ notes .|a @ aroma , on a sniff a @ whiff .|with @ "
    "smells and @ perfume .",
    "a @ body and a @ finish .|@ bubbles and @ carbonation .|a @ texture , on the tongue a @ feel "
    ".|with @ weight and @ viscosity .",
    "a @ flavor and a @ aftertaste .|@ hops and @ malt .|a @ taste , in the middle a @ sip .|with "
    "@ undertones and @ sweetness ."};

/// Neutral sentences.
inline constexpr std::string_view kFillers =
    "had this on tap at the local pub .|bottle shared by a friend from out of town .|i drank it "
    "last week while watching the game .|served in a tulip glass at cellar temperature .|this one "
    "came in a mixed pack from the store .|it went with a plate of cheese and some bread .|the "
    "label shows a ship and the name of the brewery .|from a twelve ounce can , dated two months "
    "ago .|my second review of a beer from this brewer .|we stopped at the brewpub after the hike "
    ".|the alcohol is listed at six percent .|thanks to the trader who sent it along .|poured "
    "into a pint glass and let it warm .|it is a seasonal that shows up every fall .|notes were "
    "taken in the evening .";

/// [low, middle, high]: verdicts that follow the aspects loosely.
inline constexpr std::array<std::string_view, 3> kVerdicts{
    "i will not buy this again .|not one i would seek out .|there are better ones on the shelf .",
    "it is okay for what it is .|worth a try once .|i would not turn it down .",
    "i will buy this again .|highly recommended to anyone .|one to keep in the fridge ."};

}  // namespace aimle::experiments::l2x
