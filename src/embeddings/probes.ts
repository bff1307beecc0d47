/**
 * Pairs of a query and a memory by which a provider's cosines are measured: half of them about the same thing in other
 * words, half not. Of those that are not, ten share words of another sense, so that it is meaning that is measured.
 *
 * @module
 */
export interface ProbePair {
  readonly query: string;
  readonly memory: string;
}

function pairs(...texts: (readonly [query: string, memory: string])[]): readonly ProbePair[] {
  return texts.map(([query, memory]) => ({ query, memory }));
}

export const RELATED_PROBES = pairs(
  ["Which food must we avoid when cooking for Ana?", "Ana is allergic to peanuts and shellfish."],
  ["What does he do for a living?", "Tom works as a nurse in a children's hospital."],
  ["How does she get to the office?", "Every morning Maria takes the 8:10 train to work."],
  ["Does the user have pets?", "They adopted two kittens from a shelter last spring."],
  ["Where did they spend their holidays?", "In July the family rented a cottage by the sea in Brittany."],
  ["The payment did not go through", "The customer's credit card was declined at checkout."],
  ["My parcel still has not arrived", "Delivery of the order is delayed by a week."],
  ["I cannot log in", "The account was locked after five wrong passwords."],
  ["How can I get my money back?", "Refunds are paid within ten days after the goods were returned."],
  ["Why is the website slow?", "Pages take eight seconds to load since the database was moved."],
  ["Which programming language does the team prefer?", "All services are written in Rust, and new code should be as well."],
  ["When is the next release?", "Version 4 ships to customers on the first Monday of October."],
  ["Is the child doing well at school?", "Leo got top marks in mathematics and a prize for his essay."],
  ["Does he do any sport?", "Ben runs ten kilometres before breakfast and swims on Sundays."],
  ["What music does she like?", "Her favourite band plays jazz, and she collects old Coltrane records."],
  ["Is he in good health?", "The doctor found high blood pressure and prescribed tablets."],
  ["How should answers be written?", "The user wants short replies without bullet points."],
  ["What does the flat cost?", "Their rent is 1,200 a month, heating included."],
  ["Who is her husband?", "Clara has been married to Jonas since 2015."],
  ["Is it going to be warm tomorrow?", "The forecast promises sunshine and 28 degrees for the next day."],
  ["Did the plants survive?", "The tomatoes in the garden withered during the drought."],
  ["What should I give him for his birthday?", "Paul has long wished for a telescope to watch the stars."],
  ["Why was the meeting cancelled?", "The call with the client was called off because two people were ill."],
  ["Can the car still be driven?", "The engine broke down on the motorway and needs repair."],
  ["Which hotel did we book?", "A double room at the Grand Plaza is reserved for the conference nights."],
  ["Is she a vegetarian?", "Nina has not eaten meat since she was twelve."],
  ["How do we keep a copy of the data?", "Backups of the database run every night to a second site."],
  ["What languages does he speak?", "Pavel grew up with Czech and later learned Spanish and English."],
  ["Did the team win?", "Our side beat the rivals three to one in the final."],
  ["How much sleep does he get?", "Most nights Karim lies awake until two and rises at six."],
);

export const UNRELATED_PROBES = pairs(
  ["Which food must we avoid when cooking for Ana?", "The bridge over the river is closed for repairs."],
  ["What does he do for a living?", "The printer on the second floor is out of toner."],
  ["How does she get to the office?", "Tortoises can live for more than a hundred years."],
  ["Does the user have pets?", "The invoice for March was paid by bank transfer."],
  ["Where did they spend their holidays?", "Unit tests run on every commit."],
  ["My parcel still has not arrived", "Her favourite colour is dark green."],
  ["Why is the website slow?", "The aunt bakes plum cake on Sundays."],
  ["Is the child doing well at school?", "The server restarts at midnight."],
  ["What music does she like?", "The passport expires in November."],
  ["Is it going to be warm tomorrow?", "Luca plays chess online under the name of rook42."],
  ["Did the plants survive?", "The contract with the supplier was signed on Tuesday."],
  ["Can the car still be driven?", "She reads detective stories before going to sleep."],
  ["Is she a vegetarian?", "The meeting room has a new projector."],
  ["How do we keep a copy of the data?", "Grandfather fought in the mountains as a young man."],
  ["Did the team win?", "Coffee beans are stored in the blue tin."],
  ["Who is her husband?", "Dark mode is switched on in the editor."],
  ["How much sleep does he get?", "The museum shows paintings from Venice."],
  ["What languages does he speak?", "The washing machine leaks water onto the kitchen floor."],
  ["Which hotel did we book?", "Insulin was discovered about a century ago."],
  ["How should answers be written?", "The neighbours are building a garage."],
  // Shared words, nothing in common.
  ["When does the train leave?", "She trains for a marathon and leaves cake alone."],
  ["Where is the bank?", "They had a picnic on the bank of the stream."],
  ["How do I open an account?", "On no account open the window while the parrot flies about."],
  ["What is the capital of Peru?", "The founders put their own capital into the firm."],
  ["How do I reset my password?", "The referee reset the clock after the foul."],
  ["Where are the keys to the house?", "The pianist hit the wrong keys in front of a full house."],
  ["Which branch is the fix on?", "A branch fell from the oak during the storm."],
  ["How long is the flight?", "A flight of stairs leads down to the cellar."],
  ["Who runs the company?", "Anton enjoys the company of his dog when he runs."],
  ["What is the monthly charge?", "The phone is at full charge after an hour."],
);
